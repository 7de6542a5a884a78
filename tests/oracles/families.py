"""The families that gen_models.py writes beside those that it holds itself.

For each: what a file says of itself (`keys`), its tensors (`whole`: of the whole model, `layer`: of a layer), and the
list of models. The names of keys and tensors are those of the GGUF format as llama.cpp (ggml 0.25.3) reads them.
"""
import numpy as np


def M(name, arch, seed, tok, types, n_embd, n_layer, n_head, n_kv, head_dim, n_ff, **kw):
    return dict(name=name, arch=arch, seed=seed, tok=tok, types=types, n_embd=n_embd, n_layer=n_layer,
                n_head=n_head, n_kv=n_kv, head_dim=head_dim, n_ff=n_ff, **kw)


# ------------------------------------------------------------------ pieces
def qkv(b, c, p):
    E, Q, K = c["n_embd"], c["n_head"] * c["head_dim"], c["n_kv"] * c["head_dim"]
    b.mat(p + "attn_q.weight", E, Q, 1.3)
    b.mat(p + "attn_k.weight", E, K, 1.3)
    b.mat(p + "attn_v.weight", E, K, 1.0)


def attn_out(b, c, p):
    b.mat(p + "attn_output.weight", c["n_head"] * c["head_dim"], c["n_embd"], 1.5)


def norms(b, c, p, *stems):
    for stem in stems:
        b.vec(f"{p}{stem}.weight", c["n_embd"], 1.0)


def gated(b, c, p, inner, suffix=""):
    b.mat(f"{p}ffn_gate{suffix}.weight", c["n_embd"], inner, 1.4)
    b.mat(f"{p}ffn_up{suffix}.weight", c["n_embd"], inner, 1.4)
    b.mat(f"{p}ffn_down{suffix}.weight", inner, c["n_embd"], 1.5)


def experts(b, c, p, gain, down):
    E, X, F = c["n_embd"], c["n_expert"], c["n_ff_exp"]
    b.vec2(p + "ffn_gate_inp.weight", (X, E), 2.0 / np.sqrt(E))
    b.mat(p + "ffn_gate_exps.weight", E, F, gain, (X,))
    b.mat(p + "ffn_up_exps.weight", E, F, gain, (X,))
    b.mat(p + "ffn_down_exps.weight", F, E, down, (X,))


def moe_keys(w, c):
    a = c["arch"]
    w.add_uint32(f"{a}.expert_count", c["n_expert"])
    w.add_uint32(f"{a}.expert_used_count", c["n_used"])
    w.add_uint32(f"{a}.expert_feed_forward_length", c["n_ff_exp"])


def window_keys(w, c):
    a = c["arch"]
    if "swa" in c:
        w.add_uint32(f"{a}.attention.sliding_window", c["swa"])
    if "swa_pattern" in c:
        # A period, or for each layer whether it has a window.
        x, key = c["swa_pattern"], f"{a}.attention.sliding_window_pattern"
        w.add_array(key, x) if isinstance(x, list) else w.add_uint32(key, x)


# ------------------------------------------------------------------ phi3
class Phi3:
    """Q, K and V in one matrix, gate and up in another; some files turn a part of each head, with two tables of divisors."""

    def keys(w, c):
        w.add_uint32("phi3.rope.dimension_count", c.get("n_rot", c["head_dim"]))

    def whole(b, c):
        if "rope_short" in c:
            b.raw("rope_factors_long.weight", np.asarray(c["rope_long"], np.float32))
            b.raw("rope_factors_short.weight", np.asarray(c["rope_short"], np.float32))

    def layer(b, c, p, i):
        E, H, K, D, F = c["n_embd"], c["n_head"], c["n_kv"], c["head_dim"], c["n_ff"]
        norms(b, c, p, "attn_norm", "ffn_norm")
        b.mat(p + "attn_qkv.weight", E, (H + 2 * K) * D, 1.3)
        attn_out(b, c, p)
        b.mat(p + "ffn_up.weight", E, 2 * F, 1.4)
        b.mat(p + "ffn_down.weight", F, E, 1.5)


# ------------------------------------------------------------------ gemma2
class Gemma2:
    """Scores and logits are capped; every other layer has a window; norms before and behind."""

    def keys(w, c):
        window_keys(w, c)
        w.add_float32("gemma2.attn_logit_softcapping", c["attn_cap"])
        w.add_float32("gemma2.final_logit_softcapping", c["final_cap"])

    def layer(b, c, p, i):
        norms(b, c, p, "attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
        qkv(b, c, p)
        attn_out(b, c, p)
        gated(b, c, p, c["n_ff"])


# ------------------------------------------------------------------ granite
class Granite:
    """llama's form with four factors: of embeddings, of what a layer adds, of scores, and a divisor of logits."""

    def keys(w, c):
        a = c["arch"]
        for k in ("embedding_scale", "residual_scale", "logit_scale", "attention.scale"):
            w.add_float32(f"{a}.{k}", c[k])
        w.add_uint32(f"{a}.rope.dimension_count", c["head_dim"])

    def layer(b, c, p, i):
        norms(b, c, p, "attn_norm", "ffn_norm")
        qkv(b, c, p)
        attn_out(b, c, p)
        gated(b, c, p, c["n_ff"])


class GraniteMoe:
    """The same with experts, as wide as the key for dense layers says, and one for all rows."""

    def keys(w, c):
        Granite.keys(w, c)
        w.add_uint32("granitemoe.expert_count", c["n_expert"])
        w.add_uint32("granitemoe.expert_used_count", c["n_used"])
        w.add_uint32("granitemoe.expert_shared_feed_forward_length", c["n_ff_shexp"])

    def layer(b, c, p, i):
        norms(b, c, p, "attn_norm", "ffn_norm")
        qkv(b, c, p)
        attn_out(b, c, p)
        experts(b, dict(c, n_ff_exp=c["n_ff"]), p, 1.4, 1.5)
        gated(b, c, p, c["n_ff_shexp"], "_shexp")


# ------------------------------------------------------------------ gpt-oss
class GptOss:
    """Biases everywhere, a sink for each head, experts with clamped products, every other layer with a window."""

    def keys(w, c):
        moe_keys(w, c)
        window_keys(w, c)
        w.add_uint32("gpt-oss.rope.dimension_count", c["head_dim"])

    def layer(b, c, p, i):
        E, H, K, D, X, F = c["n_embd"], c["n_head"], c["n_kv"], c["head_dim"], c["n_expert"], c["n_ff_exp"]
        norms(b, c, p, "attn_norm", "post_attention_norm")
        qkv(b, c, p)
        attn_out(b, c, p)
        for stem, n, dev in (("q", H * D, 0.5), ("k", K * D, 0.5), ("v", K * D, 0.2), ("output", E, 0.2)):
            b.vec(f"{p}attn_{stem}.bias", n, 0.0, dev)
        # As large as the logarithm of the sum of some 20 scores: the sink takes a good part.
        b.vec(p + "attn_sinks.weight", H, 3.0, 1.5)
        # Large enough that the clamps at 7 bite now and then.
        experts(b, c, p, 3.5, 0.3)
        b.vec(p + "ffn_gate_inp.bias", X, 0.0, 0.5)
        b.vec2(p + "ffn_gate_exps.bias", (X, F), 0.5)
        b.vec2(p + "ffn_up_exps.bias", (X, F), 0.5)
        b.vec2(p + "ffn_down_exps.bias", (X, E), 0.3)


# ------------------------------------------------------------------ olmo2
class Olmo2:
    """Norms behind attention and feed-forward only, and over all heads of Q and of K together."""

    def keys(w, c):
        window_keys(w, c)

    def layer(b, c, p, i):
        norms(b, c, p, "post_attention_norm", "post_ffw_norm")
        qkv(b, c, p)
        attn_out(b, c, p)
        b.vec(p + "attn_q_norm.weight", c["n_head"] * c["head_dim"], 1.3)
        b.vec(p + "attn_k_norm.weight", c["n_kv"] * c["head_dim"], 1.3)
        gated(b, c, p, c["n_ff"])


# ------------------------------------------------------------------ smollm3
class SmolLM3:
    """llama's form; each fourth layer knows no positions, which no key says."""

    def keys(w, c):
        w.add_uint32("smollm3.rope.dimension_count", c["head_dim"])

    layer = Granite.layer


# ------------------------------------------------------------------ deepseek
class DeepSeek:
    """The first layers dense; then experts whose shares are not divided by their sum, beside some for all rows."""

    def keys(w, c):
        moe_keys(w, c)
        w.add_uint32("deepseek.rope.dimension_count", c["head_dim"])
        w.add_uint32("deepseek.leading_dense_block_count", c["n_dense"])
        w.add_uint32("deepseek.expert_shared_count", c["n_shared"])
        w.add_float32("deepseek.expert_weights_scale", c["weights_scale"])

    def layer(b, c, p, i):
        norms(b, c, p, "attn_norm", "ffn_norm")
        qkv(b, c, p)
        attn_out(b, c, p)
        if i < c["n_dense"]:
            gated(b, c, p, c["n_ff"])
        else:
            experts(b, c, p, 1.4, 2.0)
            gated(b, c, p, c["n_ff_exp"] * c["n_shared"], "_shexp")


FAMILIES = {"phi3": Phi3, "gemma2": Gemma2, "granite": Granite, "granitemoe": GraniteMoe, "gpt-oss": GptOss, "olmo2": Olmo2,
            "smollm3": SmolLM3, "deepseek": DeepSeek}

# ------------------------------------------------------------------ the list
ANY = "."
MODELS = [
    # llama.cpp looks for "phi3" in the title and then for tokens of the published vocabulary.
    M("s23-phi3-q4_0", "phi3", 123, "llama-bpe", [("token_embd|^output", "Q8_0"), (ANY, "Q4_0")], 128, 2, 4, 2, 32, 192, title="s23"),
    # 256 tokens are the least that llama.cpp makes room for, and so the least border between the two tables.
    M("s24-phi3-longrope-q8_0", "phi3", 124, "llama-bpe", [(ANY, "Q8_0")], 96, 2, 3, 1, 32, 160, n_rot=24, tied=True, title="s24",
      rope_scaling={"original_context_length": 256, "attn_factor": 1.1726039}, rope_short=[1.0 + 0.03 * k for k in range(12)],
      rope_long=[1.0 + 0.25 * k * k for k in range(12)]),
    M("s25-gemma2-q4_0", "gemma2", 125, "spm", [("token_embd", "Q8_0"), (ANY, "Q4_0")], 128, 4, 4, 2, 32, 128, tied=True, swa=16,
      attn_cap=3.0, final_cap=8.0),
    M("s26-granite-q5_1", "granite", 126, "llama-bpe", [("token_embd", "Q8_0"), (ANY, "Q5_1")], 128, 2, 4, 2, 32, 256, tied=True,
      **{"embedding_scale": 3.0, "residual_scale": 0.4, "logit_scale": 0.5, "attention.scale": 0.125}),
    M("s27-gpt-oss-mxfp4", "gpt-oss", 2127, "llama-bpe", [("exps", "MXFP4"), (ANY, "Q8_0")], 64, 3, 4, 2, 32, 64, swa=16,
      n_expert=8, n_used=3, n_ff_exp=64, rope_base=150000.0,
      rope_scaling={"type": "yarn", "factor": 8.0, "original_context_length": 64}),
    M("s28-olmo2-f16", "olmo2", 128, "llama-bpe", [(ANY, "F16")], 64, 2, 4, 2, 16, 160, rope_base=500000.0),
    M("s29-smollm3-q5_0", "smollm3", 129, "llama-bpe", [("token_embd", "Q8_0"), (ANY, "Q5_0")], 96, 5, 3, 1, 32, 192, tied=True,
      rope_base=5000000.0),
    M("s30-deepseek-q4_1", "deepseek", 130, "llama-bpe", [("exps", "Q4_1"), (ANY, "Q8_0")], 64, 3, 4, 4, 16, 160, n_expert=8, n_used=3,
      n_ff_exp=64, n_dense=1, n_shared=2, weights_scale=1.7),
    M("s31-gemma3-stretched-q8_0", "gemma3", 131, "spm", [(ANY, "Q8_0")], 64, 5, 2, 1, 64, 128, swa=16, swa_pattern=2, tied=True,
      rope_base=1000000.0, rope_scaling={"type": "linear", "factor": 8.0}),
    # Olmo 3 files are of this family.
    M("s32-olmo2-window-q8_0", "olmo2", 132, "llama-bpe", [(ANY, "Q8_0")], 64, 5, 4, 2, 16, 128, rope_base=500000.0, swa=16,
      swa_pattern=[True, True, True, False, True], rope_scaling={"type": "yarn", "factor": 8.0, "original_context_length": 64}),
    M("s33-granitemoe-q8_0", "granitemoe", 133, "llama-bpe", [(ANY, "Q8_0")], 64, 2, 4, 2, 16, 32, tied=True, n_expert=8, n_used=3, n_ff_shexp=64,
      **{"embedding_scale": 3.0, "residual_scale": 0.4, "logit_scale": 0.5, "attention.scale": 0.4}),
    # gen_models.py writes this family itself.
    M("s34-mixtral-q5_0", "llama", 134, "llama-bpe", [("token_embd", "Q8_0"), (ANY, "Q5_0")], 64, 2, 4, 2, 16, 64, n_expert=8, n_used=2,
      tied=True),
]
