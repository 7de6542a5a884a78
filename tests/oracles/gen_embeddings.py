"""Writes ../golden/embeddings/llama_cpp.json: vectors of texts as llama.cpp makes them.

    python gen_embeddings.py MODELS_FOLDER     # smollm2-135m-instruct-q4_1.gguf is in there

Tiny models of ../golden/models are read too. Each row: the model's file, token ids, how rows are
gathered, and the vector, of length 1, to five digits.
"""

import json
import pathlib
import sys

import llama_cpp
import numpy as np

HERE = pathlib.Path(__file__).parent
TINY = ["s04-llama-q8_0", "s16-gemma3-q4_0", "s18-qwen35-f16"]
REAL = ["smollm2-135m-instruct-q4_1"]
TEXTS = [
    "The engine reads a file.",
    "A small boat crossed the river at dawn, and nobody saw it but the herons.",
    "fn main() { println!(\"hello\"); }",
]
POOLING = {"mean": llama_cpp.LLAMA_POOLING_TYPE_MEAN, "last": llama_cpp.LLAMA_POOLING_TYPE_LAST}


def rows_of(path, name):
    for way, pooling in POOLING.items():
        model = llama_cpp.Llama(
            str(path), embedding=True, pooling_type=pooling, n_ctx=512, n_batch=512, n_threads=1, verbose=False
        )
        for number, text in enumerate(TEXTS):
            if name in REAL:
                ids = model.tokenize(text.encode(), add_bos=True, special=False)
            else:
                ids = [(number * 31 + i * 7) % 250 + 3 for i in range(20 + 30 * number)]
            batch = llama_cpp.llama_batch_init(len(ids), 0, 1)
            batch.n_tokens = len(ids)
            for i, token in enumerate(ids):
                batch.token[i], batch.pos[i], batch.n_seq_id[i] = token, i, 1
                batch.seq_id[i][0], batch.logits[i] = 0, True
            llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(model.ctx), True)
            assert llama_cpp.llama_decode(model.ctx, batch) == 0
            width = llama_cpp.llama_model_n_embd(model.model)
            vector = np.array(llama_cpp.llama_get_embeddings_seq(model.ctx, 0)[:width], dtype=np.float64)
            llama_cpp.llama_batch_free(batch)
            vector /= np.linalg.norm(vector)
            yield {"model": name, "pooling": way, "ids": ids, "vector": [round(float(v), 5) for v in vector]}


def main():
    folder = pathlib.Path(sys.argv[1])
    rows = []
    for name in TINY:
        rows += rows_of(HERE / f"../golden/models/{name}.gguf", name)
    for name in REAL:
        rows += rows_of(folder / f"{name}.gguf", name)
    path = HERE / "../golden/embeddings/llama_cpp.json"
    path.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    path.write_text(f'{{"source": "llama-cpp-python {llama_cpp.__version__}", "rows": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
