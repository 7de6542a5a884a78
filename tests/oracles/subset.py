#!/usr/bin/env python3
"""Takes from gen_golden.py's logits what the tests read, so that the repository stays small.

    python3 subset.py FULL_DIR ../golden/logits

The logits of llama.cpp's run on the file as it is are dropped (their distance, `diff`, stays), and of p2 and p3 those of
the last rows stay only: these depend on all rows before them. `first_pos`, `n_pos` and the offsets are changed to match.
"""
import json, sys
from pathlib import Path
import numpy as np

LAST = {"p2": 9, "p3": 9}


def main():
    full, out = Path(sys.argv[1]), Path(sys.argv[2])
    for path in sorted(full.glob("*.json")):
        d = json.loads(path.read_text())
        numbers = np.fromfile(full / d["file"], "<f4")
        kept, n = [], 0

        def keep(start, count):
            nonlocal n
            kept.append(numbers[start:start + count])
            n += count
            return n - count
        for c in d["cases"]:
            c.pop("logits", None)
            drop = max(0, c["n_pos"] - LAST.get(c["name"], c["n_pos"]))
            c["first_pos"] += drop
            c["n_pos"] -= drop
            start = c["logits_f32"]["offset"] + drop * d["n_vocab"]
            c["logits_f32"]["offset"] = keep(start, c["n_pos"] * d["n_vocab"])
            for t in c.get("trace_f32", []):
                t["offset"] = keep(t["offset"], int(np.prod(t["shape"])))
        np.concatenate(kept).tofile(out / d["file"])
        (out / path.name).write_text(json.dumps(d, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
