"""Writes ../golden/samplers/llama_cpp.json: what llama.cpp's samplers make of made-up logits.

    python gen_samplers.py            # needs llama-cpp-python; reads ../golden/models

Each case names a history and the numbers of one sampler. Its answer lists the tokens whose logits
changed, or those that are left, as the sampler says. Logits are a formula, so that none need be
stored: logit(i) = ((i * 7919 + 13 * seed) % 1009) / 100 - 5, in float32.
"""

import ctypes
import json
import pathlib
import random

import llama_cpp
import numpy as np

HERE = pathlib.Path(__file__).parent
MODEL = HERE / "../golden/models/s04-llama-q8_0.gguf"
BREAKERS = ["\n", ":", '"', "*"]


def logits_of(vocabulary, seed):
    ids = np.arange(vocabulary, dtype=np.int64)
    return (((ids * 7919 + 13 * seed) % 1009).astype(np.float32) / np.float32(100) - np.float32(5)).astype(np.float32)


def run(sampler, logits, history):
    """The candidates that a sampler leaves, by id."""
    n = len(logits)
    data = (llama_cpp.llama_token_data * n)()
    for i in range(n):
        data[i].id, data[i].logit, data[i].p = i, float(logits[i]), 0.0
    array = llama_cpp.llama_token_data_array(data=data, size=n, selected=-1, sorted=False)
    for token in history:
        llama_cpp.llama_sampler_accept(sampler, token)
    llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))
    left = {array.data[i].id: np.float32(array.data[i].logit) for i in range(array.size)}
    llama_cpp.llama_sampler_free(sampler)
    return left


def changed(before, left):
    assert len(left) == len(before)
    return [[i, float(left[i])] for i in sorted(left) if left[i] != before[i]]


def main():
    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, None)
    llama_cpp.llama_backend_init()
    params = llama_cpp.llama_model_default_params()
    params.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(MODEL).encode(), params)
    vocab = llama_cpp.llama_model_get_vocab(model)
    n = llama_cpp.llama_vocab_n_tokens(vocab)
    buffer = ctypes.create_string_buffer(256)

    def piece(token):
        length = llama_cpp.llama_token_to_piece(vocab, token, buffer, 256, 0, True)
        return buffer.raw[:length]

    breaks = [t for t in range(n) if any(b.encode() in piece(t) for b in BREAKERS)]
    rng = random.Random(7)
    letters = [t for t in range(n) if t not in breaks][40:52]
    cases = []

    def penalties(history, repeat, frequency, presence):
        before = logits_of(n, len(cases))
        sampler = llama_cpp.llama_sampler_init_penalties(n, 64, repeat, frequency, presence)
        cases.append({
            "stage": "penalties", "seed": len(cases), "history": history,
            "repeat_penalty": repeat, "frequency_penalty": frequency, "presence_penalty": presence,
            "changed": changed(before, run(sampler, before, history)),
        })

    def dry(history, multiplier, base, allowed, window):
        before = logits_of(n, len(cases))
        texts = (ctypes.c_char_p * len(BREAKERS))(*[b.encode() for b in BREAKERS])
        sampler = llama_cpp.llama_sampler_init_dry(
            vocab, multiplier, base, allowed, window or 4096, texts, len(BREAKERS))
        cases.append({
            "stage": "dry", "seed": len(cases), "history": history, "multiplier": multiplier,
            "base": base, "allowed_length": allowed, "window": window,
            "changed": changed(before, run(sampler, before, history)),
        })

    def xtc(threshold, spread):
        before = logits_of(n, len(cases)) * np.float32(spread)
        sampler = llama_cpp.llama_sampler_init_xtc(1.0, threshold, 1, 1)
        left = run(sampler, before, [])
        cases.append({
            "stage": "xtc", "seed": len(cases), "history": [], "threshold": threshold, "spread": spread,
            "removed": [i for i in range(n) if i not in left],
        })

    some = [rng.choice(letters) for _ in range(100)]
    for history in [[], some[:9], some, letters[:3] * 30]:
        for numbers in [(1.3, 0.0, 0.0), (1.0, 0.7, 0.0), (1.0, 0.0, 0.9), (0.8, -0.4, -1.5), (1.1, 0.5, 0.25)]:
            penalties(history, *numbers)

    a, b, c, d, e, f = letters[:6]
    stop = breaks[0]
    histories = [
        [], [a], [a, a], [a, b, c, d, a, b], [a, b, c, d, a, b, c], [a, b, c, e, a, b, c, d, a, b, c],
        [a] * 12, [a, b] * 9, [a, b, stop, c, d, a, b, stop, c], [a, b, c, d, stop, a, b, c],
        [a, b, c, d, e, a, b, c, f, b, c], letters * 6, [rng.choice(letters[:3]) for _ in range(200)],
        [rng.choice(letters[:2]) for _ in range(60)], [a, b, c] * 5 + [stop] + [a, b],
    ]
    for history in histories:
        for numbers in [(0.8, 1.75, 2, 0), (1.5, 1.2, 1, 0), (0.8, 1.75, 4, 8), (2.0, 1.0, 2, 0), (0.8, 3.0, 2, 0)]:
            dry(history, *numbers)

    for threshold in [0.0, 0.02, 0.1, 0.3, 0.5]:
        for spread in [0.25, 0.5, 1.0, 3.0]:
            xtc(threshold, spread)

    out = {"source": f"llama-cpp-python {llama_cpp.__version__}", "vocabulary": n, "breakers": breaks, "cases": cases}
    path = HERE / "../golden/samplers/llama_cpp.json"
    path.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(case) for case in cases)
    head = json.dumps({k: v for k, v in out.items() if k != "cases"})[:-1]
    path.write_text(f'{head}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
