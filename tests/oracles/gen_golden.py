#!/usr/bin/env python3
"""Makes golden data with llama.cpp (through the llama-cpp-python package).

    python3 gen_golden.py synth   --cases cases.json --models models  --out logits
    python3 gen_golden.py real    --cases cases.json --models DIR     --out real
    python3 gen_golden.py tok     --cases cases.json --models DIR     --out tokenizer
    python3 gen_golden.py chat    --cases cases.json --models DIR [--templates DIR] --out chat
    python3 gen_golden.py dequant --seed 1 --out dequant

Needs: pip install numpy gguf jinja2 llama-cpp-python.  README.md beside this
file describes every field that is written.  Runs are single-threaded, without
weight repacking, with a float32 KV cache and without flash attention, so that
they depend as little as possible on the machine.
"""
import argparse, base64, ctypes, datetime, hashlib, json, math, os, sys, tempfile, time
from pathlib import Path
import numpy as np
import gguf
from gguf import GGMLQuantizationType as T, quants


def sha(p):
    h = hashlib.sha256()
    with open(p, "rb") as f:
        while b := f.read(1 << 22):
            h.update(b)
    return h.hexdigest()


def r7(x):
    return float(f"{float(x):.7g}")


# ------------------------------------------------------------------ llama.cpp
class Llama:
    def __init__(self, path, n_ctx=2048, vocab_only=False, threads=1, trace=None):
        import llama_cpp as lc
        self.lc = lc
        if not hasattr(Llama, "_init"):
            lc.llama_backend_init()
            Llama._cb = lc.llama_log_callback(lambda lvl, txt, ud: sys.stderr.write(txt.decode("utf8", "replace")) if lvl in (4,) else None)
            lc.llama_log_set(Llama._cb, ctypes.c_void_p(0))
            Llama._init = True
        mp = lc.llama_model_default_params()
        mp.use_extra_bufts = False
        mp.vocab_only = vocab_only
        mp.n_gpu_layers = 0
        self.model = lc.llama_model_load_from_file(str(path).encode(), mp)
        assert self.model, f"cannot load {path}"
        self.vocab = lc.llama_model_get_vocab(self.model)
        self.n_vocab = lc.llama_vocab_n_tokens(self.vocab)
        self.ctx = None
        if not vocab_only:
            cp = lc.llama_context_default_params()
            cp.n_ctx = n_ctx; cp.n_batch = n_ctx; cp.n_ubatch = 512
            cp.n_threads = cp.n_threads_batch = threads
            cp.flash_attn_type = 0
            cp.type_k = cp.type_v = 0
            if trace is not None:
                self._tcb = lc.ggml_backend_sched_eval_callback(trace)
                cp.cb_eval = self._tcb
            self.ctx = lc.llama_init_from_model(self.model, cp)
            assert self.ctx

    def close(self):
        if self.ctx:
            self.lc.llama_free(self.ctx)
        self.lc.llama_model_free(self.model)

    def tokenize(self, text, add_special=False, parse_special=True):
        b = text.encode("utf8")
        n = len(b) + 16
        a = (self.lc.llama_token * n)()
        k = self.lc.llama_tokenize(self.vocab, b, len(b), a, n, add_special, parse_special)
        assert k >= 0
        return list(a[:k])

    def piece(self, t, special=True):
        buf = ctypes.create_string_buffer(512)
        k = self.lc.llama_token_to_piece(self.vocab, t, buf, 512, 0, special)
        return buf.raw[: max(k, 0)]

    def reset(self):
        self.lc.llama_memory_clear(self.lc.llama_get_memory(self.ctx), True)

    def feed(self, toks, pos, all_logits=True):
        lc = self.lc
        b = lc.llama_batch_init(len(toks), 0, 1)
        b.n_tokens = len(toks)
        for i, t in enumerate(toks):
            b.token[i] = t; b.pos[i] = pos + i; b.n_seq_id[i] = 1; b.seq_id[i][0] = 0
            b.logits[i] = 1 if (all_logits or i == len(toks) - 1) else 0
        rc = lc.llama_decode(self.ctx, b)
        assert rc == 0, rc
        rows = range(len(toks)) if all_logits else [len(toks) - 1]
        out = np.stack([np.ctypeslib.as_array(lc.llama_get_logits_ith(self.ctx, i), (self.n_vocab,)).copy() for i in rows])
        lc.llama_batch_free(b)
        return out

    def greedy(self, last, pos, n):
        """n greedy steps; `last` are the logits after the prompt."""
        out = []
        for i in range(n):
            top = np.argpartition(-last, 2)[:2]
            top = top[np.argsort(-last[top], kind="stable")]
            out.append((int(top[0]), r7(last[top[0]] - last[top[1]])))
            if i + 1 < n:
                last = self.feed([int(top[0])], pos + i)[-1]
        return out


def f32_twin(src, dst):
    """The same model with every tensor dequantized to float32."""
    r = gguf.GGUFReader(src)
    arch = r.fields["general.architecture"].contents()
    w = gguf.GGUFWriter(dst, arch)
    for k, f in r.fields.items():
        if k.startswith("GGUF.") or k in ("general.architecture", "general.file_type"):
            continue
        t = f.types[0]
        w.add_key_value(k, f.contents(), t, f.types[-1] if t == gguf.GGUFValueType.ARRAY else None)
    w.add_file_type(0)
    for t in r.tensors:
        w.add_tensor_info(t.name, [int(x) for x in reversed(t.shape)], np.dtype(np.float32), int(t.n_elements) * 4)
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_ti_data_to_file()
    for t in r.tensors:
        d = t.data if t.tensor_type == T.F32 else quants.dequantize(t.data, t.tensor_type)
        w.write_tensor_data(np.ascontiguousarray(d.reshape([int(x) for x in reversed(t.shape)]), dtype=np.float32))
    w.close()


# ------------------------------------------------------------------ synthetic models
STEPS = 32          # greedy steps after each prompt
N_CTX = 2048
TRACE = ("attn_norm", "l_out", "result_norm", "inp_embd", "inp_scaled")


def ggml_lib(lc):
    g = ctypes.CDLL(os.path.join(os.path.dirname(lc.__file__), "lib", "libggml-base.so"))
    g.ggml_get_name.restype = ctypes.c_char_p; g.ggml_get_name.argtypes = [ctypes.c_void_p]
    g.ggml_nelements.restype = ctypes.c_int64; g.ggml_nelements.argtypes = [ctypes.c_void_p]
    g.ggml_nbytes.restype = ctypes.c_size_t; g.ggml_nbytes.argtypes = [ctypes.c_void_p]
    g.ggml_is_contiguous.restype = ctypes.c_bool; g.ggml_is_contiguous.argtypes = [ctypes.c_void_p]
    g.ggml_backend_tensor_get.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t]
    return g


def prompts_for(cases, kind):
    return [c for c in cases["prompts"] if c.get("for", kind) == kind]


def n_ctx_for(r, arch, n_tokens):
    """Tokens of the context. Where a file has two tables of divisors, llama.cpp chooses by this number: no larger than needed."""
    key = f"{arch}.rope.scaling.original_context_length"
    if any(t.name == "rope_factors_long.weight" for t in r.tensors):
        original = r.fields[key].contents()
        return original if n_tokens + STEPS <= original else N_CTX
    return N_CTX


def cmd_synth(a, cases):
    import llama_cpp as lc
    g = ggml_lib(lc)
    a.out.mkdir(parents=True, exist_ok=True)
    for p in sorted(a.models.glob("*.gguf")):
        if a.only and a.only not in p.name:
            continue
        r = gguf.GGUFReader(p)
        arch = r.fields["general.architecture"].contents()
        kind = "spm" if r.fields["tokenizer.ggml.model"].contents() == "llama" else "bpe"
        with tempfile.TemporaryDirectory() as td:
            twin = Path(td) / "twin.gguf"
            f32_twin(p, twin)
            got = {}

            def tr(t, ask, ud):
                n = g.ggml_get_name(t).decode()
                base = n.rsplit("-", 1)[0]
                if base not in TRACE:
                    return False if ask else True
                if not ask:
                    x = np.empty(g.ggml_nelements(t), np.float32)
                    if g.ggml_nbytes(t) == x.nbytes:
                        g.ggml_backend_tensor_get(t, x.ctypes.data, 0, x.nbytes)
                        got[n] = x
                return True
            opened = {}

            def at(n_ctx):
                if n_ctx not in opened:
                    opened[n_ctx] = Llama(p, n_ctx), Llama(twin, n_ctx), Llama(twin, n_ctx, trace=tr)
                return opened[n_ctx]
            blob, off, res = [], 0, []

            def put(x):
                nonlocal off
                x = np.ascontiguousarray(x, np.float32)
                blob.append(x.tobytes())
                o = off
                off += x.size
                return o
            for c in prompts_for(cases, kind):
                toks = at(N_CTX)[0].tokenize(c["text"], True, True)
                n_ctx = n_ctx_for(r, arch, len(toks))
                q, f, ft = at(n_ctx)
                keep = c.get("last")
                first = max(0, len(toks) - keep) if keep else 0
                e = dict(name=c["name"], text=c["text"], add_special=True, parse_special=True, tokens=toks, first_pos=first, n_pos=len(toks) - first)
                if n_ctx != N_CTX:
                    e["n_ctx"] = n_ctx
                outs = []
                for key, m in (("", q), ("_f32", f)):
                    m.reset()
                    lg = m.feed(toks, 0)
                    e["logits" + key] = dict(offset=put(lg[first:]))
                    gr = m.greedy(lg[-1], len(toks), STEPS)
                    e["greedy" + key] = [x for x, _ in gr]
                    e["greedy_margin" + key] = [y for _, y in gr]
                    outs.append(lg)
                d = (outs[0] - outs[1]).astype(np.float64)
                e["diff"] = dict(max_abs=r7(np.abs(d).max()), rms=r7(np.sqrt((d ** 2).mean())), f32_std=r7(outs[1].std()),
                                 argmax_same=int((outs[0].argmax(1) == outs[1].argmax(1)).sum()), n=len(toks))
                if c.get("trace"):
                    got.clear(); ft.reset(); ft.feed(toks, 0)
                    e["trace_f32"] = [dict(name=n, shape=[len(toks), x.size // len(toks)], offset=put(x)) for n, x in got.items()]
                res.append(e)
            n_vocab = q.n_vocab
            for m in (m for three in opened.values() for m in three):
                m.close()
        name = p.stem + ".logits.bin"
        (a.out / name).write_bytes(b"".join(blob))
        (a.out / (p.stem + ".json")).write_text(json.dumps(dict(model=p.name, sha256=sha(p), arch=arch, n_vocab=n_vocab, file=name,
                                                                types=sorted({t.tensor_type.name for t in r.tensors}), cases=res), ensure_ascii=True, indent=None, separators=(",", ":")) + "\n")
        print(p.stem, [(e["name"], len(e["tokens"]), e["diff"]["rms"], e["diff"]["f32_std"], e["diff"]["argmax_same"]) for e in res], flush=True)


# ------------------------------------------------------------------ real models
def top(lg, k=20):
    i = np.argpartition(-lg, k)[:k]
    i = i[np.argsort(-lg[i], kind="stable")]
    m = lg.max()
    lse = float(m + np.log(np.exp((lg - m).astype(np.float64)).sum()))
    return [int(x) for x in i], [r7(x) for x in lg[i]], r7(lse)


def cmd_real(a, cases):
    a.out.mkdir(parents=True, exist_ok=True)
    for p in sorted(a.models.glob("*.gguf")):
        if a.only and a.only not in p.name:
            continue
        name = p.stem
        ps = [c for c in cases["real_prompts"] if c.get("for", name) == name or (isinstance(c.get("for"), list) and name in c["for"])]
        if not ps:
            continue
        out = {}
        td = tempfile.mkdtemp(dir=a.tmp)
        twin = Path(td) / "twin.gguf"
        try:
            for key in ("", "_f32"):
                if key:
                    if a.no_twin:
                        break
                    f32_twin(p, twin)
                t0 = time.time()
                m = Llama(twin if key else p, n_ctx=2048, threads=a.threads)
                for c in ps:
                    e = out.setdefault(c["name"], dict(name=c["name"], text=c["text"], add_special=c.get("add_special", True), parse_special=True))
                    toks = m.tokenize(c["text"], e["add_special"], True)
                    e["tokens"] = toks
                    m.reset()
                    lg = m.feed(toks, 0)
                    if c.get("nll"):
                        x = lg[:-1].astype(np.float64)
                        mx = x.max(1, keepdims=True)
                        lse = (mx + np.log(np.exp(x - mx).sum(1, keepdims=True)))[:, 0]
                        nll = lse - x[np.arange(len(toks) - 1), toks[1:]]
                        e["nll" + key] = [float(f"{v:.4f}") for v in nll]
                        e["mean_nll" + key] = r7(nll.mean()); e["ppl" + key] = r7(math.exp(nll.mean()))
                        e["argmax" + key] = [int(v) for v in lg.argmax(1)]
                    else:
                        tt = [top(v) for v in lg]
                        e["top" + key] = dict(ids=[t[0] for t in tt], logits=[t[1] for t in tt], lse=[t[2] for t in tt])
                        gr = m.greedy(lg[-1], len(toks), 32)
                        e["greedy" + key] = [x for x, _ in gr]
                        e["greedy_margin" + key] = [y for _, y in gr]
                        e["greedy_text" + key] = b"".join(m.piece(x) for x, _ in gr).decode("utf8", "replace")
                    print(name, key or "_q", c["name"], len(toks), e.get("ppl" + key), repr(e.get("greedy_text" + key)), f"{time.time()-t0:.0f}s", flush=True)
                nv = m.n_vocab
                m.close()
        finally:
            if twin.exists():
                twin.unlink()
            os.rmdir(td)
        (a.out / f"{name}.json").write_text(json.dumps(dict(model=p.name, sha256=sha(p), n_vocab=nv, cases=list(out.values())), ensure_ascii=True, separators=(",", ":")) + "\n")


# ------------------------------------------------------------------ tokenizers
def cmd_tok(a, cases):
    a.out.mkdir(parents=True, exist_ok=True)
    for p in sorted(a.models.glob("*.gguf")):
        if a.only and a.only not in p.name:
            continue
        m = Llama(p, vocab_only=True)
        r = gguf.GGUFReader(p)
        fld = lambda k, d=None: r.fields[k].contents() if k in r.fields else d
        rows = []
        for s in cases["strings"]:
            ids = m.tokenize(s, False, True)
            raw = m.tokenize(s, False, False)
            full = m.tokenize(s, True, True)
            e = dict(text=s, ids=ids)
            if raw != ids:
                e["ids_plain"] = raw
            if full != ids:
                k = len(full) - len(ids)
                if k > 0 and full[-len(ids):] == ids or not ids:
                    e["prefix"] = full[:k]
                elif k > 0 and full[: len(ids)] == ids:
                    e["suffix"] = full[len(ids):]
                else:
                    e["ids_full"] = full
            e["text_back"] = base64.b64encode(b"".join(m.piece(t) for t in ids)).decode()
            rows.append(e)
        rng = np.random.Generator(np.random.PCG64(cases["seed"]))
        ids = sorted(set(int(x) for x in rng.integers(0, m.n_vocab, 96)) | set(range(8)) | set(range(max(0, m.n_vocab - 8), m.n_vocab)))
        pieces = [[t, m.piece(t).hex(), m.piece(t, False).hex()] for t in ids]
        (a.out / (p.stem + ".json")).write_text(json.dumps(dict(
            model=p.name, sha256=sha(p), tokenizer=fld("tokenizer.ggml.model"), pre=fld("tokenizer.ggml.pre"), n_vocab=m.n_vocab,
            bos=m.lc.llama_vocab_bos(m.vocab), eos=m.lc.llama_vocab_eos(m.vocab), eot=m.lc.llama_vocab_eot(m.vocab),
            add_bos=bool(m.lc.llama_vocab_get_add_bos(m.vocab)), add_eos=bool(m.lc.llama_vocab_get_add_eos(m.vocab)),
            eog=[t for t in range(m.n_vocab) if m.lc.llama_vocab_is_eog(m.vocab, t)],
            cases=rows, pieces=pieces), ensure_ascii=True, separators=(",", ":")) + "\n")
        print(p.stem, len(rows), sum(len(x["ids"]) for x in rows), flush=True)
        m.close()


# ------------------------------------------------------------------ chat templates
def cmd_chat(a, cases):
    import jinja2
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    a.out.mkdir(parents=True, exist_ok=True)

    def fail(msg):
        raise jinja2.TemplateError(msg)

    def render(src, conv, bos, eos):
        env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
        env.filters["tojson"] = lambda x, ensure_ascii=False, indent=None, separators=None, sort_keys=False: json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        env.globals["raise_exception"] = fail
        env.globals["strftime_now"] = lambda f: datetime.datetime(2026, 1, 31, 12, 0, 0).strftime(f)
        kw = dict(conv.get("kwargs", {}))
        if conv.get("tools"):
            kw["tools"] = conv["tools"]
        try:
            return dict(text=env.from_string(src).render(messages=conv["messages"], add_generation_prompt=conv.get("add_generation_prompt", False),
                                                         bos_token=bos, eos_token=eos, **kw))
        except jinja2.TemplateError as e:
            return dict(error=True, message=str(e)[:300])
        except Exception as e:                      # e.g. a type error inside the template
            return dict(error=True, message=type(e).__name__)

    def write(name, source, digest, src, bos, eos):
        rows = []
        for c in cases["conversations"]:
            rows.append(dict(name=c["name"], **render(src, c, bos, eos)))
        (a.out / (name + ".json")).write_text(json.dumps(dict(template=source, template_sha256=digest, bos_token=bos, eos_token=eos, cases=rows),
                                                         ensure_ascii=True, separators=(",", ":")) + "\n")
        print(name, len(rows), "errors:", [r["name"] for r in rows if "error" in r], flush=True)

    for p in sorted(a.models.glob("*.gguf")):
        r = gguf.GGUFReader(p)
        if "tokenizer.chat_template" not in r.fields:
            print(p.stem, "no chat template")
            continue
        toks = r.fields["tokenizer.ggml.tokens"]
        tok = lambda k: toks.contents()[int(r.fields[f"tokenizer.ggml.{k}"].contents())] if f"tokenizer.ggml.{k}" in r.fields else ""
        src = r.fields["tokenizer.chat_template"].contents()
        write(p.stem, p.name, hashlib.sha256(src.encode()).hexdigest(), src, tok("bos_token_id"), tok("eos_token_id"))
    for n in cases.get("templates", []):
        if not a.templates:
            break
        src = (a.templates / (n["file"])).read_bytes()
        write("template-" + Path(n["file"]).stem, n["file"], hashlib.sha256(src).hexdigest(), src.decode(), n.get("bos", ""), n.get("eos", ""))


# ------------------------------------------------------------------ dequantization
class Traits(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("blck", ctypes.c_int64), ("inter", ctypes.c_int64), ("size", ctypes.c_size_t), ("isq", ctypes.c_bool),
                ("to_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)),
                ("from_float", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64))]


# type id, where the float16 scales are in a block (byte offsets)
TYPES = {"F16": (1, []), "BF16": (30, []), "Q4_0": (2, [0]), "Q4_1": (3, [0, 2]), "Q5_0": (6, [0]), "Q5_1": (7, [0, 2]), "Q8_0": (8, [0]),
         "Q2_K": (10, [80, 82]), "Q3_K": (11, [108]), "Q4_K": (12, [0, 2]), "Q5_K": (13, [0, 2]), "Q6_K": (14, [208]),
         "IQ2_XXS": (16, [0]), "IQ2_XS": (17, [0]), "IQ3_XXS": (18, [0]), "IQ1_S": (19, [0]), "IQ4_NL": (20, [0]), "IQ3_S": (21, [0]),
         "IQ2_S": (22, [0]), "IQ4_XS": (23, [0]), "IQ1_M": (29, None), "TQ1_0": (34, [52]), "TQ2_0": (35, [64]), "MXFP4": (39, None), "NVFP4": (40, None)}


def cmd_dequant(a, _):
    import llama_cpp as lc
    g = ggml_lib(lc)
    g.ggml_get_type_traits.restype = ctypes.POINTER(Traits); g.ggml_get_type_traits.argtypes = [ctypes.c_int]
    g.ggml_quantize_chunk.restype = ctypes.c_size_t
    g.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    g.ggml_quantize_requires_imatrix.restype = ctypes.c_bool; g.ggml_quantize_requires_imatrix.argtypes = [ctypes.c_int]
    a.out.mkdir(parents=True, exist_ok=True)
    idx = []
    for name, (tid, scales) in TYPES.items():
        tr = g.ggml_get_type_traits(tid).contents
        bs, ts = int(tr.blck), int(tr.size)
        rng = np.random.Generator(np.random.PCG64([a.seed, tid]))
        blob, off, secs = [], 0, []

        def put(x):
            nonlocal off
            b = np.ascontiguousarray(x).tobytes()
            b += b"\0" * (-len(b) % 4)
            blob.append(b)
            o = off
            off += len(b)
            return o

        def deq(raw):
            n = raw.size // ts * bs
            y = np.empty(n, np.float32)
            raw = np.ascontiguousarray(raw)
            tr.to_float(raw.ctypes.data, y.ctypes.data, n)
            return y

        def add(kind, raw, **kw):
            y = deq(raw)
            try:
                y2 = quants.dequantize(raw.reshape(1, -1), T(tid)).reshape(-1)
                d = np.abs(y.astype(np.float64) - y2)
                ok = np.isfinite(d)
                ulp = float((d[ok] / np.maximum(np.abs(y[ok]), 1e-30)).max()) if ok.any() else 0.0
            except NotImplementedError:
                ulp = None
            secs.append(dict(kind=kind, n_blocks=raw.size // ts, raw=put(raw), values=put(y), **kw))
            return ulp
        nb = {1: 512, 32: 24, 64: 12}.get(bs, 6)
        # packed bits all random, scales of a plausible size
        raw = rng.integers(0, 256, (nb, ts), dtype=np.uint8)
        if name in ("F16", "BF16"):
            v = rng.standard_normal(nb).astype(np.float32) * np.exp(rng.uniform(-8, 8, nb)).astype(np.float32)
            raw = v.astype(np.float16).view(np.uint8).reshape(nb, 2) if name == "F16" else (v.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8).reshape(nb, 2)
        elif name == "MXFP4":
            raw[:, 0] = rng.integers(110, 136, nb)
        elif name == "NVFP4":
            raw[:, :4] = rng.integers(0x20, 0x60, (nb, 4))
        elif name == "IQ1_M":
            s = np.asarray(rng.uniform(0.01, 0.1, nb), np.float16).view(np.uint16)
            for k in range(4):                      # the scale's four nibbles sit on top of the four 16-bit scale words
                raw[:, 48 + 2 * k + 1] = (raw[:, 48 + 2 * k + 1] & 0x0F) | (((s >> (4 * k)) & 0xF) << 4).astype(np.uint8)
        else:
            for o in scales:
                raw[:, o:o + 2] = (rng.uniform(0.002, 0.05, nb) * rng.choice([-1, 1], nb)).astype(np.float16).view(np.uint8).reshape(nb, 2)
        e1 = add("random", raw)
        # quantized by llama.cpp from known floats
        e2 = None
        if not g.ggml_quantize_requires_imatrix(tid) and bs > 1:
            rows = 2
            per = max(256, bs) if bs > 1 else 256
            x = rng.standard_normal((rows, per)).astype(np.float32) * np.float32(0.05)
            x[0, 7] = 0.4; x[1, : per // 8] = 0
            q = np.zeros(rows * per // bs * ts, np.uint8)
            g.ggml_quantize_chunk(tid, x.ctypes.data, q.ctypes.data, 0, rows, per, None)
            e2 = add("quantized", q.reshape(-1, ts), source=put(x))
        # extremes
        ed = []
        z = np.zeros((1, ts), np.uint8); ed.append(z)
        if scales:
            for fill, d in ((0xFF, 0.01), (0xFF, -0.01), (0x00, 1.0), (0x55, 6e-8), (0xAA, 65504.0 / 2 ** 11), (0x80, 0.125)):
                b = np.full((1, ts), fill, np.uint8)
                for o in scales:
                    b[0, o:o + 2] = np.array([d], np.float16).view(np.uint8)
                ed.append(b)
        elif name == "MXFP4":
            for e in (1, 2, 127, 200, 254):
                b = rng.integers(0, 256, (1, ts), dtype=np.uint8); b[0, 0] = e; ed.append(b)
        elif name in ("F16", "BF16"):
            for v in ((0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0x3C00) if name == "F16" else (0x0000, 0x8000, 0x0001, 0x7F7F, 0x0080, 0x3F80, 0xBF81, 0x7F80)):
                ed.append(np.array([v], np.uint16).view(np.uint8).reshape(1, 2))
        e3 = add("edge", np.concatenate(ed))
        (a.out / f"{name}.bin").write_bytes(b"".join(blob))
        idx.append(dict(type=name, id=tid, block_elems=bs, block_bytes=ts, file=f"{name}.bin", sections=secs))
        print(name, bs, ts, "largest relative difference to the gguf package:", e1, e2, e3, flush=True)
    (a.out / "index.json").write_text(json.dumps(dict(seed=a.seed, types=idx), separators=(",", ":")) + "\n")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("what", choices=["synth", "real", "tok", "chat", "dequant"])
    ap.add_argument("--cases", type=Path)
    ap.add_argument("--models", type=Path)
    ap.add_argument("--templates", type=Path)
    ap.add_argument("--out", type=Path, required=True)
    ap.add_argument("--only", default="")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--threads", type=int, default=1)
    ap.add_argument("--no-twin", action="store_true")
    ap.add_argument("--tmp", default=None)
    a = ap.parse_args()
    cases = json.loads(a.cases.read_text()) if a.cases else None
    globals()["cmd_" + a.what](a, cases)


if __name__ == "__main__":
    main()
