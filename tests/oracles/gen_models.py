#!/usr/bin/env python3
"""Writes small synthetic GGUF models with random weights (deterministic).

    python3 gen_models.py OUTDIR            # all models of this file's list
    python3 gen_models.py OUTDIR --only s08 # names containing s08
    python3 gen_models.py OUTDIR --check    # write, then compare with ../golden/models
    python3 gen_models.py OUTDIR --spec F   # models described in a JSON file F

families.py beside it holds the families that came later.

Needs: pip install numpy gguf.  Nothing here needs llama.cpp: float types and
the 32-element formats are quantized by the gguf package, the K-/IQ-formats are
built directly as random blocks (every bit of the packed fields is random, only
the scales are chosen so that the weights have a useful size).

The vocabularies are trained here, from a text written for this purpose, so
no file holds anything of a published tokenizer.
"""
import argparse, hashlib, json, re, sys, zlib
from collections import Counter
from pathlib import Path
import numpy as np
import gguf
from gguf import GGMLQuantizationType as T
from gguf import quants
from families import FAMILIES, M, MODELS as LATER

# ------------------------------------------------------------------ text used to train the toy vocabularies
TEXT = """
The small engine reads a file, maps it into memory and starts to answer. When the user asks a question,
the engine turns the words into tokens, runs them through the layers and picks the next token. It then
repeats this until the end of the answer. There are two cores in this machine, and the memory is slow,
so the weights are stored in four or five bits each. What is the capital of France? The capital of France
is Paris. Hello, world! How are you today? I am fine, thank you. The quick brown fox jumps over the lazy dog.
Once upon a time there was a little girl who lived in a village near the forest. She walked to the river
every day, and the river told her stories. "Tell me more," she said; the river answered: "Tomorrow."
fn main() {
    let mut total = 0;
    for i in 0..10 {
        total += i * 2;
    }
    println!("total = {}", total);
}
def add(a, b):
    return a + b

class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

It's 12:30 on 2024-05-17, and we've 3 apples, 14 pears, 159 plums and 2,653 nuts. They'll cost 10.50 each.
Der kleine Hund läuft über die Straße. Où est la bibliothèque? El niño comió una manzana. Привет, мир!
日本語のテキスト。 中文文本。 한국어 텍스트. Ελληνικά γράμματα. naïve café résumé.
1. First step
2. Second step
- a list item
- another list item

You are a helpful assistant. The user said: please write a short story about the sea and the stars.
"""

CHATML = ("{%- for m in messages %}{{- '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{%- endfor %}"
          "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}")
TURNS = ("{{ bos_token }}{%- for m in messages %}{%- set r = 'model' if m['role'] == 'assistant' else m['role'] %}"
         "{{- '<start_of_turn>' + r + '\n' + (m['content'] | trim) + '<end_of_turn>\n' }}{%- endfor %}"
         "{%- if add_generation_prompt %}{{- '<start_of_turn>model\n' }}{%- endif %}")


def byte_alphabet():
    """The printable stand-in of each byte in byte-level BPE vocabularies."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    m, nxt = {}, 256
    for b in range(256):
        if b in keep:
            m[b] = chr(b)
        else:
            m[b] = chr(nxt)
            nxt += 1
    return m


def train_pairs(words, n, sep_ok=lambda a, b: True):
    """Plain BPE training over a Counter of tuples; returns merges in rank order."""
    merges = []
    words = dict(words)
    while len(merges) < n:
        c = Counter()
        for w, k in words.items():
            for p in zip(w, w[1:]):
                if sep_ok(*p):
                    c[p] += k
        if not c:
            break
        best = min(c, key=lambda p: (-c[p], p))
        if c[best] < 2:
            break
        merges.append(best)
        new = {}
        for w, k in words.items():
            o, i = [], 0
            while i < len(w):
                if i + 1 < len(w) and (w[i], w[i + 1]) == best:
                    o.append(w[i] + w[i + 1]); i += 2
                else:
                    o.append(w[i]); i += 1
            new[tuple(o)] = new.get(tuple(o), 0) + k
        words = new
    return merges


_cache = {}


def toy_bpe(n_vocab):
    if ("bpe", n_vocab) in _cache:
        return _cache[("bpe", n_vocab)]
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
    al = byte_alphabet()
    words = Counter()
    for w in re.findall(r" ?[^\W\d_]+|\d| ?[^\w\s]+|\s+(?=\s)|\s+|_", TEXT * 1):
        words[tuple(al[b] for b in w.encode())] += 1
    n_merge = n_vocab - 256 - len(special)
    # a first run of blank merges: real byte-level vocabularies have tokens for indentation
    sp = al[32]
    merges = [(sp, sp), (sp * 2, sp * 2), (al[10], al[10])]
    merges += [m for m in train_pairs(words, n_merge) if m not in merges][: n_merge - 3]
    toks = [al[b] for b in sorted(al, key=lambda b: ord(al[b]))] + [a + b for a, b in merges]
    seen, uniq, mg = set(), [], []
    for t in toks[:256]:
        seen.add(t); uniq.append(t)
    for a, b in merges:
        if a + b not in seen:
            seen.add(a + b); uniq.append(a + b)
        mg.append(f"{a} {b}")
    while len(uniq) < n_vocab - len(special):
        uniq.append(f"[unused{len(uniq)}]")
    types = [5 if t.startswith("[unused") else 1 for t in uniq]
    # <think>, </think> are user-defined (visible text), the rest control tokens
    r = (uniq + special, types + [3, 3, 3, 4, 4], mg)
    _cache[("bpe", n_vocab)] = r
    return r


def toy_spm(n_vocab):
    if ("spm", n_vocab) in _cache:
        return _cache[("spm", n_vocab)]
    head = [("<pad>", 3), ("<eos>", 3), ("<bos>", 3), ("<unk>", 2), ("<start_of_turn>", 3), ("<end_of_turn>", 3)]
    toks = [t for t, _ in head] + [f"<0x{b:02X}>" for b in range(256)]
    types = [k for _, k in head] + [6] * 256
    scores = [-1000.0] * 6 + [0.0] * 256
    U = "\u2581"
    txt = TEXT.replace(" ", U)
    chars = [c for c, k in Counter(txt).most_common() if k >= 2 and c != "\n"]
    chars.sort(key=lambda c: (-txt.count(c), c))
    words = Counter(tuple(w) for w in re.findall(U + "*[^" + U + r"\n]*", txt) if w)
    n_merge = n_vocab - len(toks) - len(chars)
    pieces = [U * 2, U * 4, U * 3]
    for a, b in train_pairs(words, n_merge):
        if a + b not in pieces:
            pieces.append(a + b)
    pieces = pieces[:n_merge]
    for i, p in enumerate(pieces + chars):
        toks.append(p); types.append(1); scores.append(-float(i))
    while len(toks) < n_vocab:
        toks.append(f"<unused{len(toks)}>"); types.append(5); scores.append(-1000.0)
    r = (toks[:n_vocab], types[:n_vocab], scores[:n_vocab])
    _cache[("spm", n_vocab)] = r
    return r


# ------------------------------------------------------------------ weights
def rng_for(seed, name):
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))


def f16_bytes(x):
    return np.asarray(x, np.float32).astype(np.float16).view(np.uint8).reshape(-1, 2)


def raw_blocks(t, nb, rng, scale):
    """nb random blocks of a K-/IQ-type, dequantizing to values of RMS `scale`."""
    ts = gguf.GGML_QUANT_SIZES[t][1]
    b = rng.integers(0, 256, (nb, ts), dtype=np.uint8)
    jit = rng.uniform(0.7, 1.3, nb).astype(np.float32)

    def put(d):
        d16 = f16_bytes(d * jit)
        if t == T.Q2_K:
            b[:, 80:82] = d16; b[:, 82:84] = f16_bytes(1.5 * d * jit)
        elif t == T.Q3_K:
            b[:, 108:110] = d16
        elif t in (T.Q4_K, T.Q5_K):
            b[:, 0:2] = d16; b[:, 2:4] = f16_bytes((7.5 if t == T.Q4_K else 15.5) * d * jit)
        elif t == T.Q6_K:
            b[:, 208:210] = d16
        else:                                   # IQ4_NL, IQ4_XS, IQ2_*, IQ3_*, IQ1_S: scale comes first
            b[:, 0:2] = d16
    put(1.0)
    rms = float(np.sqrt(np.mean(np.square(quants.dequantize(b, t).astype(np.float64)))))
    put(scale / rms)
    return b


RAW = {T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K, T.IQ4_NL, T.IQ4_XS, T.IQ2_XXS, T.IQ2_XS, T.IQ2_S, T.IQ3_XXS, T.IQ3_S, T.IQ1_S}


def weight(seed, name, shape, t, scale):
    """shape in row-major (numpy) order: [..., rows, columns]. Returns what GGUFWriter.add_tensor wants."""
    rng = rng_for(seed, name)
    if t in RAW:
        bs, ts = gguf.GGML_QUANT_SIZES[t]
        assert shape[-1] % bs == 0, (name, shape, t)
        n = int(np.prod(shape)) // bs
        return raw_blocks(t, n, rng, scale).reshape(*shape[:-1], shape[-1] // bs * ts)
    x = rng.standard_normal(shape, dtype=np.float32) * np.float32(scale)
    if t == T.F32:
        return x
    if t == T.F16:
        return x.astype(np.float16)
    return quants.quantize(x, t)


class Builder:
    def __init__(self, cfg):
        self.c, self.t = cfg, []

    def typ(self, name):
        for pat, t in self.c["types"]:
            if re.search(pat, name):
                return T[t]
        raise KeyError(name)

    def mat(self, name, cols, rows, gain=1.0, lead=(), fan=None):
        """A weight that maps `cols` inputs to `rows` outputs."""
        t = self.typ(name)
        sc = gain / np.sqrt(fan or cols)
        self.t.append((name, weight(self.c["seed"], name, (*lead, rows, cols), t, sc), t))

    def vec(self, name, n, mean=0.0, dev=0.1):
        x = rng_for(self.c["seed"], name).standard_normal(n, dtype=np.float32) * np.float32(dev) + np.float32(mean)
        self.t.append((name, x, T.F32))

    def vec2(self, name, shape, dev):
        """Float values of several dimensions."""
        self.raw(name, weight(self.c["seed"], name, shape, T.F32, dev))

    def raw(self, name, x):
        self.t.append((name, x, T.F32))


def build(cfg, path):
    c = dict(n_vocab=512 if cfg["tok"] == "spm" else 400, n_ctx=2048, eps=1e-6, rope_base=10000.0, tied=False)
    c.update(cfg)
    arch = c["arch"]
    E, L, H, K, D, F, V = c["n_embd"], c["n_layer"], c["n_head"], c["n_kv"], c["head_dim"], c["n_ff"], c["n_vocab"]
    b = Builder(c)
    w = gguf.GGUFWriter(None, arch)
    w.add_type("model")
    w.add_name(c.get("title", c["name"]))
    w.add_string("general.license", "cc0-1.0")
    w.add_uint32(f"{arch}.block_count", L)
    w.add_uint32(f"{arch}.context_length", c["n_ctx"])
    w.add_uint32(f"{arch}.embedding_length", E)
    w.add_uint32(f"{arch}.feed_forward_length", F)
    w.add_uint32(f"{arch}.attention.head_count", H)
    w.add_uint32(f"{arch}.attention.head_count_kv", K)
    if D * H != E or arch != "llama":
        w.add_uint32(f"{arch}.attention.key_length", D)
        w.add_uint32(f"{arch}.attention.value_length", D)
    w.add_float32(f"{arch}.rope.freq_base", c["rope_base"])
    w.add_float32(f"{arch}.attention.layer_norm_rms_epsilon", c["eps"])
    w.add_uint32(f"{arch}.vocab_size", V)
    hybrid = arch in ("qwen35", "qwen35moe", "qwen3next")
    mixtral = arch == "llama" and "n_expert" in c               # each expert as wide as a dense feed-forward
    moe = mixtral or arch in ("qwen3moe", "qwen35moe", "qwen3next")
    n_rot = c.get("n_rot", D)
    if arch == "llama" or hybrid:
        w.add_uint32(f"{arch}.rope.dimension_count", n_rot)
    for k, v in c.get("rope_scaling", {}).items():
        key = f"{arch}.rope.scaling.{k}"
        w.add_string(key, v) if isinstance(v, str) else w.add_float32(key, v) if isinstance(v, float) else w.add_uint32(key, v)
    if moe:
        w.add_uint32(f"{arch}.expert_count", c["n_expert"])
        w.add_uint32(f"{arch}.expert_used_count", c["n_used"])
        if not mixtral:
            w.add_uint32(f"{arch}.expert_feed_forward_length", c["n_ff_exp"])
        if hybrid:
            w.add_uint32(f"{arch}.expert_shared_feed_forward_length", c["n_ff_shexp"])
    if arch == "gemma3":
        w.add_uint32(f"{arch}.attention.sliding_window", c["swa"])
        if "swa_pattern" in c:
            w.add_uint32(f"{arch}.attention.sliding_window_pattern", c["swa_pattern"])
    if hybrid:
        N, KH, VH, CK = c["ssm_state"], c["ssm_k_heads"], c["ssm_v_heads"], 4
        w.add_uint32(f"{arch}.ssm.conv_kernel", CK)
        w.add_uint32(f"{arch}.ssm.state_size", N)
        w.add_uint32(f"{arch}.ssm.group_count", KH)
        w.add_uint32(f"{arch}.ssm.time_step_rank", VH)
        w.add_uint32(f"{arch}.ssm.inner_size", N * VH)
        w.add_uint32(f"{arch}.full_attention_interval", 4)
        if arch != "qwen3next":
            h = n_rot // 2
            s = [h - 2 * (h // 3), h // 3, h // 3, 0]
            w.add_array(f"{arch}.rope.dimension_sections", s)

    family = FAMILIES.get(arch)
    if family:
        family.keys(w, c)

    # tokenizer
    if c["tok"] == "spm":
        toks, types, scores = toy_spm(V)
        w.add_tokenizer_model("llama"); w.add_tokenizer_pre("default")
        w.add_token_list(toks); w.add_token_scores(scores); w.add_token_types(types)
        w.add_bos_token_id(2); w.add_eos_token_id(1); w.add_unk_token_id(3); w.add_pad_token_id(0)
        w.add_add_bos_token(True); w.add_add_eos_token(False); w.add_add_space_prefix(c.get("space_prefix", False))
        w.add_chat_template(TURNS)
    else:
        toks, types, merges = toy_bpe(V)
        w.add_tokenizer_model("gpt2"); w.add_tokenizer_pre(c["tok"])
        w.add_token_list(toks); w.add_token_types(types); w.add_token_merges(merges)
        w.add_bos_token_id(toks.index("<|endoftext|>")); w.add_eos_token_id(toks.index("<|im_end|>"))
        w.add_pad_token_id(toks.index("<|endoftext|>")); w.add_add_bos_token(False)
        w.add_chat_template(CHATML)

    # tensors
    b.mat("token_embd.weight", E, V, 1.0, fan=1 if not c["tied"] else E / 9)
    if not c["tied"]:
        b.mat("output.weight", E, V, 3.0)
    b.vec("output_norm.weight", E, 1.0)
    if c.get("rope_freqs"):
        b.raw("rope_freqs.weight", np.asarray(c["rope_freqs"](n_rot) if callable(c["rope_freqs"]) else freqs_llama3(n_rot), np.float32))
    if hasattr(family, "whole"):
        family.whole(b, c)
    bias = arch == "qwen2"
    qkn = arch in ("qwen3", "qwen3moe", "gemma3") or hybrid
    for i in range(L):
        p = f"blk.{i}."
        if family:
            family.layer(b, c, p, i)
            continue
        b.vec(p + "attn_norm.weight", E, 1.0)
        recurrent = hybrid and (i + 1) % 4 != 0
        if recurrent:
            kd, vd = N * KH, N * VH
            b.mat(p + "attn_qkv.weight", E, 2 * kd + vd, 1.5)
            # keys resemble queries, as in a trained model: random ones would make q.k hover
            # around zero, and the norm behind it would blow rounding noise up
            x = b.t[-1][1]
            same = np.arange(kd) % 4 != 3
            x[kd:2 * kd][same] = x[:kd][same]
            b.mat(p + "attn_gate.weight", E, vd, 1.5)
            b.raw(p + "ssm_conv1d.weight", rng_for(c["seed"], p + "conv").standard_normal((2 * kd + vd, CK), dtype=np.float32) * np.float32(1.0))
            b.vec(p + "ssm_dt.bias", VH, -1.0, 1.0)
            b.raw(p + "ssm_a", -np.exp(rng_for(c["seed"], p + "a").uniform(-3, 1, VH)).astype(np.float32))
            if arch == "qwen3next":
                b.mat(p + "ssm_ba.weight", E, 2 * VH, 1.0)
            else:
                b.mat(p + "ssm_beta.weight", E, VH, 1.0)
                b.mat(p + "ssm_alpha.weight", E, VH, 1.0)
            b.vec(p + "ssm_norm.weight", N, 1.0)
            b.mat(p + "ssm_out.weight", vd, E, 1.5)
        else:
            b.mat(p + "attn_q.weight", E, H * D * (2 if hybrid else 1), 1.3)
            b.mat(p + "attn_k.weight", E, K * D, 1.3)
            b.mat(p + "attn_v.weight", E, K * D, 1.0)
            if bias:
                b.vec(p + "attn_q.bias", H * D, 0.0, 0.5)
                b.vec(p + "attn_k.bias", K * D, 0.0, 0.5)
                b.vec(p + "attn_v.bias", K * D, 0.0, 0.2)
            b.mat(p + "attn_output.weight", H * D, E, 1.5)
            if qkn:
                b.vec(p + "attn_q_norm.weight", D, 1.3)
                b.vec(p + "attn_k_norm.weight", D, 1.3)
        if arch == "gemma3":
            b.vec(p + "post_attention_norm.weight", E, 1.0)
            b.vec(p + "post_ffw_norm.weight", E, 1.0)
            b.vec(p + "ffn_norm.weight", E, 1.0)
        elif hybrid:
            b.vec(p + "post_attention_norm.weight", E, 1.0)
        else:
            b.vec(p + "ffn_norm.weight", E, 1.0)
        if moe:
            X, FX = c["n_expert"], F if mixtral else c["n_ff_exp"]
            b.raw(p + "ffn_gate_inp.weight", weight(c["seed"], p + "router", (X, E), T.F32, 2.0 / np.sqrt(E)))
            b.mat(p + "ffn_gate_exps.weight", E, FX, 1.4, (X,))
            b.mat(p + "ffn_up_exps.weight", E, FX, 1.4, (X,))
            b.mat(p + "ffn_down_exps.weight", FX, E, 1.5, (X,))
            if hybrid:
                S = c["n_ff_shexp"]
                b.raw(p + "ffn_gate_inp_shexp.weight", weight(c["seed"], p + "shgate", (E,), T.F32, 1.0 / np.sqrt(E)))
                b.mat(p + "ffn_gate_shexp.weight", E, S, 1.4)
                b.mat(p + "ffn_up_shexp.weight", E, S, 1.4)
                b.mat(p + "ffn_down_shexp.weight", S, E, 1.5)
        else:
            b.mat(p + "ffn_gate.weight", E, F, 1.4)
            b.mat(p + "ffn_up.weight", E, F, 1.4)
            b.mat(p + "ffn_down.weight", F, E, 1.5)

    w.add_quantization_version(2)
    for name, data, t in b.t:
        data = np.ascontiguousarray(data)
        if t in (T.F32, T.F16):
            w.add_tensor(name, data)
        else:
            w.add_tensor(name, data, raw_dtype=t)
    w.write_header_to_file(path)
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def freqs_llama3(n_rot, base=500000.0, factor=8.0, lo=1.0, hi=4.0, old=256):
    """Frequency divisors as a Llama-3.1 style file holds them in rope_freqs.weight."""
    out = []
    for k in range(n_rot // 2):
        wl = 2 * np.pi * base ** (2 * k / n_rot)
        if wl < old / hi:
            out.append(1.0)
        elif wl > old / lo:
            out.append(factor)
        else:
            s = (old / wl - lo) / (hi - lo)
            out.append(1.0 / ((1 - s) / factor + s))
    return out


# ------------------------------------------------------------------ the list
ANY = "."
MODELS = [
    M("s01-llama-f32", "llama", 101, "llama-bpe", [(ANY, "F32")], 64, 2, 4, 2, 16, 160),
    M("s02-llama-f16-spm", "llama", 102, "spm", [(ANY, "F16")], 64, 2, 4, 4, 16, 176, tied=True, space_prefix=True),
    M("s03-llama-bf16-ropefreqs", "llama", 103, "llama-bpe", [(ANY, "BF16")], 64, 2, 4, 1, 16, 160, rope_base=500000.0, rope_freqs=True),
    M("s04-llama-q8_0", "llama", 104, "smollm", [(ANY, "Q8_0")], 96, 3, 3, 1, 32, 224),
    M("s05-llama-q4_0", "llama", 105, "smollm", [("^output", "Q6_K"), (ANY, "Q4_0")], 256, 2, 4, 2, 64, 512),
    M("s06-llama-q4_1", "llama", 106, "smollm", [("token_embd", "Q8_0"), (ANY, "Q4_1")], 192, 2, 3, 1, 64, 512, tied=True, rope_base=100000.0),
    M("s07-llama-f16-yarn", "llama", 107, "llama-bpe", [(ANY, "F16")], 64, 2, 2, 2, 32, 128,
      rope_scaling={"type": "yarn", "factor": 4.0, "original_context_length": 64}, n_ctx=256),
    M("s08-llama-f16-linear", "llama", 108, "gpt-2", [(ANY, "F16")], 64, 2, 2, 1, 32, 128, rope_scaling={"type": "linear", "factor": 2.0}),
    M("s09-qwen2-q5_0-q5_1", "qwen2", 109, "qwen2", [("token_embd", "Q5_0"), ("^output", "Q8_0"), ("ffn_down|attn_v", "Q5_1"), (ANY, "Q5_0")],
      128, 3, 4, 2, 32, 320, rope_base=1000000.0),
    M("s10-qwen2-q4_k_m", "qwen2", 110, "qwen2", [("^output", "Q6_K"), ("ffn_down|attn_v", "Q6_K"), (ANY, "Q4_K")], 256, 2, 4, 1, 64, 512,
      rope_base=1000000.0),
    M("s11-qwen3-q5_k_m", "qwen3", 111, "qwen2", [("token_embd", "Q6_K"), ("ffn_down|attn_v", "Q6_K"), (ANY, "Q5_K")], 256, 2, 4, 1, 128, 512,
      rope_base=1000000.0, tied=True),
    M("s12-qwen3-q2_k-q3_k", "qwen3", 112, "qwen2", [("token_embd", "Q3_K"), ("^output", "Q6_K"), ("ffn_down|attn_v|attn_output", "Q3_K"), (ANY, "Q2_K")],
      256, 2, 4, 1, 64, 512, rope_base=1000000.0),
    M("s13-qwen3-iq4", "qwen3", 113, "qwen2", [("^output", "Q6_K"), ("ffn_down|attn_v|token_embd", "IQ4_NL"), (ANY, "IQ4_XS")],
      256, 2, 2, 1, 128, 512, rope_base=1000000.0),
    M("s14-qwen3moe-q4_k_m", "qwen3moe", 1114, "qwen2", [("^output|ffn_down_exps|attn_v", "Q6_K"), (ANY, "Q4_K")], 256, 1, 4, 2, 64, 512,
      n_expert=8, n_used=2, n_ff_exp=256, rope_base=1000000.0),
    M("s15-qwen3moe-mxfp4", "qwen3moe", 4115, "qwen2", [("exps", "MXFP4"), (ANY, "Q8_0")], 128, 2, 4, 2, 32, 256,
      n_expert=16, n_used=4, n_ff_exp=96, rope_base=1000000.0),
    M("s16-gemma3-q4_0", "gemma3", 116, "spm", [("token_embd", "Q8_0"), (ANY, "Q4_0")], 128, 7, 2, 1, 64, 256, swa=16, tied=True,
      rope_base=1000000.0),
    M("s17-gemma3-q4_k_m", "gemma3", 117, "spm", [("token_embd|attn_v", "Q8_0"), ("ffn_down", "Q6_K"), ("attn_q|attn_k|attn_output|ffn_up", "Q5_0"), (ANY, "Q4_K")],
      256, 3, 2, 1, 64, 256, swa=24, swa_pattern=3, tied=True, rope_base=1000000.0),
    M("s18-qwen35-f16", "qwen35", 118, "qwen35", [(ANY, "F16")], 64, 4, 2, 1, 64, 128, n_rot=16, ssm_state=32, ssm_k_heads=2, ssm_v_heads=4,
      rope_base=10000000.0, tied=True),
    M("s19-qwen35-q4_k_m", "qwen35", 2119, "qwen35", [("ssm_(alpha|beta)", "F32"), ("token_embd|ffn_down|attn_v|ssm_out", "Q6_K"), ("attn_qkv", "Q5_K"), (ANY, "Q4_K")],
      256, 4, 4, 1, 64, 256, n_rot=16, ssm_state=64, ssm_k_heads=2, ssm_v_heads=4, rope_base=10000000.0, tied=True),
    M("s20-qwen35moe-q8_0", "qwen35moe", 5120, "qwen35", [("ssm_(alpha|beta)", "F32"), (ANY, "Q8_0")], 64, 4, 2, 1, 32, 128, n_rot=8, ssm_state=32,
      ssm_k_heads=2, ssm_v_heads=2, rope_base=10000000.0, n_expert=8, n_used=2, n_ff_exp=32, n_ff_shexp=32),
    M("s21-qwen3next-q8_0", "qwen3next", 2121, "qwen2", [("ssm_ba", "F32"), (ANY, "Q8_0")], 64, 4, 2, 1, 32, 128, n_rot=8, ssm_state=32,
      ssm_k_heads=2, ssm_v_heads=4, rope_base=10000000.0, n_expert=8, n_used=2, n_ff_exp=32, n_ff_shexp=64),
    M("s22-llama-iq2-iq3", "llama", 122, "llama-bpe", [("^output|token_embd", "Q5_K"), ("attn_q", "IQ2_XXS"), ("attn_k", "IQ2_XS"), ("attn_v", "IQ3_S"),
      ("attn_output", "IQ3_XXS"), ("ffn_down", "IQ3_S"), ("ffn_gate", "IQ2_S"), (ANY, "IQ1_S")], 256, 2, 4, 2, 64, 512),
]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("outdir", type=Path)
    ap.add_argument("--only", default="")
    ap.add_argument("--check", action="store_true")
    ap.add_argument("--spec", type=Path, help="JSON list of model descriptions instead of the built-in list")
    a = ap.parse_args()
    a.outdir.mkdir(parents=True, exist_ok=True)
    models = json.loads(a.spec.read_text()) if a.spec else MODELS + LATER
    sums = {}
    for c in models:
        if a.only not in c["name"]:
            continue
        p = a.outdir / (c["name"] + ".gguf")
        build(c, p)
        sums[p.name] = hashlib.sha256(p.read_bytes()).hexdigest()
        print(f"{sums[p.name]}  {p.name}  {p.stat().st_size}")
    if a.check:
        golden = Path(__file__).parent.parent / "golden" / "models"
        want = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in golden.glob("*.gguf")}
        bad = [n for n in sums if want.get(n) != sums[n]]
        print("differ:", bad) if bad else print("all as recorded")
        return 1 if bad else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
