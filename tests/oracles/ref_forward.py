#!/usr/bin/env python3
"""A readable float64 forward pass in numpy for the synthetic models; checks logits/.

    python3 ref_forward.py              # all models against ../golden/logits/*.logits.bin
    python3 ref_forward.py --only s11

It is the executable description of what a file means (weights dequantized, no
rounding of activations). Slow and simple on purpose. Needs numpy and gguf.
"""
import argparse, json, math
from pathlib import Path
import numpy as np
import gguf
from gguf import quants, GGMLQuantizationType as T

GOLDEN = Path(__file__).parent.parent / "golden"


def load(path):
    r = gguf.GGUFReader(path)
    kv = {k: f.contents() for k, f in r.fields.items() if not k.startswith("tokenizer.ggml.to") and not k.startswith("tokenizer.ggml.me")}
    w = {}
    for t in r.tensors:
        d = t.data if t.tensor_type == T.F32 else quants.dequantize(t.data, t.tensor_type)
        w[t.name] = d.reshape([int(x) for x in reversed(t.shape)]).astype(np.float64)
    return kv, w


def rms(x, w, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def silu(x):
    return x / (1 + np.exp(-x))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def cap(x, limit):
    return limit * np.tanh(x / limit) if limit else x


def clamped_swiglu(gate, up):
    """gpt-oss: both clamped at 7, sigmoid of 1.702 times the gate, and one more than up."""
    gate, up = np.minimum(gate, 7.0), np.clip(up, -7.0, 7.0)
    return gate * sigmoid(1.702 * gate) * (up + 1)


ADJACENT = ("llama", "granite", "granitemoe", "smollm3", "deepseek")       # rotate neighbours; the others one value of each half
POST_NORMS = ("gemma2", "gemma3", "olmo2")
PERIODS = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "olmo2": 4}


class Model:
    def __init__(self, path):
        self.kv, self.w = load(path)
        self.arch = a = self.kv["general.architecture"]
        g = lambda k, d=None: self.kv.get(f"{a}.{k}", d)
        self.g = g
        self.E, self.L, self.H, self.K = g("embedding_length"), g("block_count"), g("attention.head_count"), g("attention.head_count_kv")
        self.D = g("attention.key_length", self.E // self.H)
        self.n_rot = g("rope.dimension_count", self.D)
        self.base, self.eps = g("rope.freq_base", 10000.0), g("attention.layer_norm_rms_epsilon")
        self.neox = a not in ADJACENT
        self.n_ctx = 2048

    def windowed(self, layer):
        if self.arch not in PERIODS or not self.g("attention.sliding_window"):
            return False
        pattern = self.g("attention.sliding_window_pattern", PERIODS[self.arch])
        return pattern[layer] if isinstance(pattern, list) else (layer + 1) % pattern != 0

    def angles(self, pos, layer):
        """cos and sin of the rotation, and the magnitude factor."""
        n, base, scale, mag = self.n_rot, self.base, 1.0, 1.0
        kind = self.g("rope.scaling.type", "none")
        if self.windowed(layer) and self.arch == "gemma3":
            base, kind = 10000.0, "none"
        if self.windowed(layer) and self.arch == "olmo2":
            kind = "none"
        i = np.arange(n // 2)
        th = base ** (-2.0 * i / n)
        if "rope_freqs.weight" in self.w:
            th = th / self.w["rope_freqs.weight"]
        if "rope_factors_long.weight" in self.w:
            long = self.n_ctx > self.g("rope.scaling.original_context_length")
            th, mag = th / self.w[f"rope_factors_{'long' if long else 'short'}.weight"], self.g("rope.scaling.attn_factor")
        f = self.g("rope.scaling.factor", 1.0)
        if kind == "linear":
            th = th / f
        elif kind == "yarn":
            orig = self.g("rope.scaling.original_context_length")
            dim = lambda beta: n * math.log(orig / (beta * 2 * math.pi)) / (2 * math.log(base))
            lo, hi = max(0, math.floor(dim(32.0))), min(n - 1, math.ceil(dim(1.0)))
            keep = 1 - np.clip((i - lo) / max(0.001, hi - lo), 0, 1)   # 1: as trained, 0: interpolated
            th = th / f * (1 - keep) + th * keep
            mag = 1 + 0.1 * math.log(f)
        a = pos[:, None] * th[None]
        return np.cos(a) * mag, np.sin(a) * mag

    def rope(self, x, pos, layer):                                # x: [tokens, heads, dim]
        if self.arch == "smollm3" and layer % 4 == 3:
            return x
        c, s = self.angles(pos, layer)
        c, s = c[:, None], s[:, None]
        n, o = self.n_rot, x.copy()
        if self.neox:
            a, b = x[..., : n // 2], x[..., n // 2: n]
            o[..., : n // 2], o[..., n // 2: n] = a * c - b * s, a * s + b * c
        else:
            a, b = x[..., 0:n:2], x[..., 1:n:2]
            o[..., 0:n:2], o[..., 1:n:2] = a * c - b * s, a * s + b * c
        return o

    def attention(self, x, p, i):
        w, H, K, D, n = self.w, self.H, self.K, self.D, len(x)
        if p + "attn_qkv.weight" in w:
            q, k, v = np.split(x @ w[p + "attn_qkv.weight"].T, [H * D, (H + K) * D], 1)
        else:
            q, k, v = (x @ w[p + f"attn_{c}.weight"].T + w.get(p + f"attn_{c}.bias", 0.0) for c in "qkv")
        if self.arch == "olmo2":                                  # over all heads together
            q, k = rms(q, w[p + "attn_q_norm.weight"], self.eps), rms(k, w[p + "attn_k_norm.weight"], self.eps)
        gate = None
        if self.hybrid:                                           # per head: query, then gate
            q = q.reshape(n, H, 2 * D)
            q, gate = q[..., :D], q[..., D:].reshape(n, H * D)
        q, k, v = q.reshape(n, H, D), k.reshape(n, K, D), v.reshape(n, K, D)
        if p + "attn_q_norm.weight" in w and self.arch != "olmo2":
            q, k = rms(q, w[p + "attn_q_norm.weight"], self.eps), rms(k, w[p + "attn_k_norm.weight"], self.eps)
        pos = np.arange(n, dtype=np.float64)
        q, k = self.rope(q, pos, i), self.rope(k, pos, i)
        d = np.arange(n)[:, None] - np.arange(n)[None]
        mask = d < 0
        if self.windowed(i):
            mask |= d >= self.g("attention.sliding_window")
        out = np.empty((n, H, D))
        scale = self.g("attention.scale", 1 / math.sqrt(D))
        if (self.arch, self.L) in (("gemma2", 46), ("gemma3", 62)):   # those of 27 billion weights
            scale = 1 / math.sqrt(self.E / H)
        sinks = w.get(p + "attn_sinks.weight", np.full(H, -np.inf))
        for h in range(H):
            s = cap(q[:, h] @ k[:, h * K // H].T * scale, self.g("attn_logit_softcapping"))
            s[mask] = -np.inf
            top = np.maximum(s.max(1, keepdims=True), sinks[h])
            s = np.exp(s - top)
            out[:, h] = s / (s.sum(1, keepdims=True) + np.exp(sinks[h] - top)) @ v[:, h * K // H]
        out = out.reshape(n, H * D)
        if gate is not None:
            out = out * sigmoid(gate)
        return out @ w[p + "attn_output.weight"].T + w.get(p + "attn_output.bias", 0.0)

    def delta_net(self, x, p):
        w, n = self.w, len(x)
        N, KH, VH, CK = self.g("ssm.state_size"), self.g("ssm.group_count"), self.g("ssm.time_step_rank"), self.g("ssm.conv_kernel")
        mix, z = x @ w[p + "attn_qkv.weight"].T, x @ w[p + "attn_gate.weight"].T
        if self.arch == "qwen3next":                              # per key head: its betas, then its alphas
            ba = (x @ w[p + "ssm_ba.weight"].T).reshape(n, KH, 2, VH // KH)
            beta, alpha = ba[:, :, 0].reshape(n, VH), ba[:, :, 1].reshape(n, VH)
            key_head = lambda h: h // (VH // KH)
        else:
            beta, alpha = x @ w[p + "ssm_beta.weight"].T, x @ w[p + "ssm_alpha.weight"].T
            key_head = lambda h: h % KH
        beta = sigmoid(beta)
        decay = np.exp(w[p + "ssm_a"] * np.log1p(np.exp(alpha + w[p + "ssm_dt.bias"])))
        pad = np.concatenate([np.zeros((CK - 1, mix.shape[1])), mix])
        conv = silu(sum(pad[j: j + n] * w[p + "ssm_conv1d.weight"][:, j] for j in range(CK)))
        q, k, v = conv[:, : N * KH].reshape(n, KH, N), conv[:, N * KH: 2 * N * KH].reshape(n, KH, N), conv[:, 2 * N * KH:].reshape(n, VH, N)
        unit = lambda a: a / np.sqrt((a * a).sum(-1, keepdims=True) + self.eps)
        q, k = unit(q), unit(k)
        out = np.empty((n, VH, N))
        for h in range(VH):
            S = np.zeros((N, N))                                  # [value, key]
            kh = key_head(h)
            for t in range(n):
                S = S * decay[t, h]
                S = S + np.outer((v[t, h] - S @ k[t, kh]) * beta[t, h], k[t, kh])
                out[t, h] = S @ q[t, kh] / math.sqrt(N)
        out = rms(out, w[p + "ssm_norm.weight"], self.eps) * silu(z.reshape(n, VH, N))
        return out.reshape(n, VH * N) @ w[p + "ssm_out.weight"].T

    def shares(self, logits):
        """What each expert's output counts for in a row; 0 for those not chosen."""
        best = np.argsort(-logits, kind="stable")[: self.g("expert_used_count")]
        pr = np.exp(logits - logits.max())
        pr /= pr.sum()
        out = np.zeros_like(pr)
        # Divided by the sum over the chosen, which is the same as choosing before the softmax.
        out[best] = pr[best] * self.g("expert_weights_scale") if self.arch == "deepseek" else pr[best] / pr[best].sum()
        return out

    def ffn(self, x, p):
        w = self.w
        act = gelu if self.arch in ("gemma2", "gemma3") else silu
        product = clamped_swiglu if self.arch == "gpt-oss" else lambda gate, up: act(gate) * up
        if p + "ffn_gate_inp.weight" not in w:
            if p + "ffn_gate.weight" in w:
                gate, up = x @ w[p + "ffn_gate.weight"].T, x @ w[p + "ffn_up.weight"].T
            else:
                gate, up = np.split(x @ w[p + "ffn_up.weight"].T, 2, 1)
            return product(gate, up) @ w[p + "ffn_down.weight"].T
        lg = x @ w[p + "ffn_gate_inp.weight"].T + w.get(p + "ffn_gate_inp.bias", 0.0)
        mat = lambda stem, e, y: w[f"{p}ffn_{stem}_exps.weight"][e] @ y + w.get(f"{p}ffn_{stem}_exps.bias", {e: 0.0})[e]
        out = np.zeros_like(x)
        for t in range(len(x)):
            share = self.shares(lg[t])
            for e in np.flatnonzero(share):
                out[t] += share[e] * mat("down", e, product(mat("gate", e, x[t]), mat("up", e, x[t])))
        if p + "ffn_gate_shexp.weight" in w:
            y = (silu(x @ w[p + "ffn_gate_shexp.weight"].T) * (x @ w[p + "ffn_up_shexp.weight"].T)) @ w[p + "ffn_down_shexp.weight"].T
            gate = w.get(p + "ffn_gate_inp_shexp.weight")
            out += y if gate is None else sigmoid(x @ gate.reshape(-1, 1)) * y
        return out

    @property
    def hybrid(self):
        return self.arch in ("qwen35", "qwen35moe", "qwen3next")

    def forward(self, toks):
        w = self.w
        x = w["token_embd.weight"][toks]
        if self.arch in ("gemma2", "gemma3"):
            x = x * math.sqrt(self.E)
        x = x * self.g("embedding_scale", 1.0)
        # A norm that a file lacks changes nothing: olmo2 has those behind, most others those in front.
        norm = lambda h, name: rms(h, w[name + ".weight"], self.eps) if name + ".weight" in w else h
        behind = self.arch in POST_NORMS
        added = self.g("residual_scale", 1.0)
        for i in range(self.L):
            p = f"blk.{i}."
            h = norm(x, p + "attn_norm")
            h = self.delta_net(h, p) if p + "ssm_a" in w else self.attention(h, p, i)
            if behind:
                h = norm(h, p + "post_attention_norm")
            x = x + h * added
            # Where it is not behind attention, the norm of this name is the one before the feed-forward.
            h = self.ffn(norm(x, p + ("ffn_norm" if p + "ffn_norm.weight" in w or behind else "post_attention_norm")), p)
            if behind:
                h = norm(h, p + "post_ffw_norm")
            x = x + h * added
        x = norm(x, "output_norm") @ w.get("output.weight", w["token_embd.weight"]).T
        return cap(x / self.g("logit_scale", 1.0), self.g("final_logit_softcapping"))


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--only", default="")
    ap.add_argument("--models", type=Path, default=GOLDEN / "models")
    ap.add_argument("--logits", type=Path, default=GOLDEN / "logits")
    a = ap.parse_args()
    for j in sorted(a.logits.glob("*.json")):
        d = json.loads(j.read_text())
        if a.only not in d["model"]:
            continue
        m = Model(a.models / d["model"])
        blob = np.fromfile(a.logits / d["file"], "<f4")
        line = []
        for c in d["cases"]:
            want = blob[c["logits_f32"]["offset"]:][: c["n_pos"] * d["n_vocab"]].reshape(c["n_pos"], -1)
            m.n_ctx = c.get("n_ctx", 2048)
            got = m.forward(np.array(c["tokens"]))[c["first_pos"]:]
            e = np.abs(got - want)
            line.append(f"{c['name']} rms {np.sqrt((e ** 2).mean()):.1e} max {e.max():.1e}")
        print(f"{d['model'][:-5]:28s}", "; ".join(line), flush=True)


if __name__ == "__main__":
    main()
