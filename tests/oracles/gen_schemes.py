#!/usr/bin/env python3
"""Token ids of one small vocabulary under every pre-tokenizer name, and the ends of made vocabularies.

    python3 gen_schemes.py OUTDIR            # writes OUTDIR/schemes.json and OUTDIR/ends.json

Needs numpy, gguf, regex and llama-cpp-python (README.md). llama.cpp is asked for every name by itself. The expressions as
their authors published them are below; they are run by the `regex` module with merging in plain Python, as a second opinion.
Where the two differ, the models were trained with the published one: its ids are written, and llama.cpp's as `llama_cpp`.
"""
import argparse, json, sys, tempfile
from collections import Counter
from pathlib import Path
import gguf
import regex
from gen_golden import Llama
from gen_models import TEXT, byte_alphabet

HERE = Path(__file__).parent
CONTRACTION = "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def words(digits, contraction=CONTRACTION + "|", after=r"[\r\n]*"):
    return contraction + r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}" + digits + r"| ?[^\s\p{L}\p{N}]+" + after + "|" + LINES


def cased(ending, digits):
    upper, lower = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
    lead = r"[^\r\n\p{L}\p{N}]?"
    return (lead + upper + "*" + lower + "+" + ending + "|" + lead + upper + "+" + lower + "*" + ending
            + r"|\p{N}" + digits + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + LINES)


CASED = r"\s?[A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤΩℨK-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃]+"
BLOOM = r" ?[^(\s|.,!?…。，、।۔،)]+"
DEEPSEEK3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|""" + LINES)
# names, stages, begin token of its own accord, words taken whole
SCHEMES = [
    ("gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de mpt olmo jais gigachat a.x-4.0 mellum exaone4 trillion granite-docling", [GPT2]),
    ("smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", [r"\p{N}", GPT2]),
    ("llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2", [words("{1,3}")], True, True),
    ("dbrx smaug-bpe chatglm-bpe", [words("{1,3}")]),
    ("glm4 glm5 minicpm5", [words("{1,3}")], False, True),
    ("qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez kormo solar-open grok-2 bailingmoe bailingmoe2 llada-moe", [words("")]),
    ("qwen35", [CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|" + LINES]),
    ("ufakzeka", [words("", "")]),
    ("seed-coder", [words("", after="")]),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", [cased(CONTRACTION + "?", "{1,3}")]),
    ("tekken", [cased("", "")], True, True),
    ("deepseek-llm", [r"[\r\n]", CASED, r"\s?[!-/:-~！-／：-～‘-‟　-。]+", r"\s+$", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}+"]),
    ("deepseek-coder", [r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", r"[一-龥ࠀ-一가-퟿]+", r"\p{N}"]),
    ("deepseek-v3 hunyuan-dense joyai-llm", [r"\p{N}{1,3}", r"[一-龥぀-ゟ゠-ヿ]+", DEEPSEEK3]),
    ("falcon", [r"[\p{P}\$\+<=>\^~\|`]+", GPT2, "[0-9][0-9][0-9]"]),
    ("bloom poro-chat gpt3-finnish", [BLOOM]),
    ("viking", [BLOOM, r"\p{N}"]),
    ("default", [r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"]),
]

MORE = [
    "HTMLParser's getX2Y XMLHttpRequest iOS McDonald ABCdef ABC aB", "Ünïcode ÄÖÜ äÖ ÉcOle ПриветМир ΑΒΓαβγ ǅabc ʰx ªº",
    "It'sA it'SB 'S 's we'VE'll 'D'x Ali'nin evi'de 'quoted' ''s", "a1b22c333d4444e55555f666666g7777777 1 12 123 1234 12345 123456 1234567",
    "x/y //z ./a/b!/\n/ !?/ =/=\r\n/", "a.b.c ,d !e -f (g) [h] {i} `j` ~k |l ^m $n +o <p> =q #r @s", "`a`` $5 +1 <=> ^~|",
    "日本AB日 ab日cd 漢字カナかな混じり文ABCです。한글English한글 ไทยthai", "é e\u0301x \u0301A \u0301b !\u0301 A\u0301B\u0301c \u0301\u0301",
    "कि क्या है? বাংলা ভাষা। தமிழ், עִבְרִית العَرَبِيَّة، أهلا", "a\u00a0b\u2003c\u3000d\u2028e\u0085f", "\u3000\u3000x  \u3000 y", "a  b   c    d     e \t\tf \t g",
    "\n\n\n\n a\n  b\n\n  \n  c\r\n\r\n  d \n", "   \n   x\n \t\n", "end  ", "end\n", " \u0001\u0002 a\u0000\u0000b \u200b\u200dc", "😀😀 a😀b 👍🏽! ☎✈ ©®™ €5 ½¾ ²³ Ⅳ ①②",
    "１２３４５ ٠١٢٣٤ १२३४५ 12１２", "，。！？、：；（）「」 ‘a’ “b” … — ～", "zebra zebras a zebra zebra!", "…a ।b ۔c ،d (e|f) g?h", "foo_bar __init__ snake_case2 a_1",
]


def alphabet():
    al = byte_alphabet()
    return [al[b] for b in range(256)]


def learn(texts, count):
    """Merges over whole texts, across every border that a word could have: so every border shows in the ids. No text becomes
    an end marker."""
    rows, merges, pieces = [list(t.encode()) for t in texts], [], [bytes([b]) for b in range(256)]
    taken = set(pieces) | {m.encode() for m in MARKERS}
    while len(merges) < count:
        pairs = Counter()
        for row in rows:
            pairs.update(zip(row, row[1:]))
        best = min((p for p in pairs if pieces[p[0]] + pieces[p[1]] not in taken), key=lambda p: (-pairs[p], p))
        pieces.append(pieces[best[0]] + pieces[best[1]])
        taken.add(pieces[-1])
        merges.append(best)
        rows = [merged(row, best, len(pieces) - 1) for row in rows]
    return merges


def merged(row, pair, new):
    out, i = [], 0
    while i < len(row):
        if tuple(row[i:i + 2]) == pair:
            out.append(new); i += 2
        else:
            out.append(row[i]); i += 1
    return out


def parts(text, stages):
    if not stages:
        return [text] if text else []
    out, at = [], 0
    for hit in stages[0].finditer(text):
        if hit.start() == hit.end():
            continue
        out += parts(text[at:hit.start()], stages[1:]) + parts(hit.group(), stages[1:])
        at = hit.end()
    return out + parts(text[at:], stages[1:])


def encode(word, vocab, taken):
    b = word.encode()
    if taken and b in vocab["id"]:
        return [vocab["id"][b]]
    row = list(b)
    while len(row) > 1:
        rank, pair = min((vocab["rank"].get(p, 1 << 30), p) for p in zip(row, row[1:]))
        if rank == 1 << 30:
            break
        row = merged(row, pair, 256 + rank)
    return row


def write(path, tokens, types, merges, pre, **ids):
    w = gguf.GGUFWriter(path, "llama")
    w.add_block_count(1); w.add_context_length(64); w.add_embedding_length(8); w.add_feed_forward_length(8); w.add_head_count(1)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_tokenizer_model("gpt2"); w.add_tokenizer_pre(pre)
    w.add_token_list(tokens); w.add_token_types(types); w.add_token_merges(merges)
    for name, id in ids.items():
        w.add_uint32(f"tokenizer.ggml.{name}_token_id", id)
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()


def schemes(out, tmp):
    strings = [s for s in json.loads((HERE / "cases.json").read_text())["strings"]] + MORE
    merges = learn([TEXT] + [s for s in strings if "zebra" not in s] * 2, 2000)
    pieces = [bytes([b]) for b in range(256)]
    for a, b in merges:
        pieces.append(pieces[a] + pieces[b])
    whole = ["zebra", " zebra", " zebras"]          # tokens that no merge gives
    pieces += [w.encode() for w in whole]
    letters = alphabet()
    spell = lambda b: "".join(letters[x] for x in b)
    tokens = [spell(p) for p in pieces]
    begin = len(tokens)
    tokens.append("<|begin|>")
    types = [1] * begin + [3]
    lines = [f"{tokens[a]} {tokens[b]}" for a, b in merges]
    vocab = dict(id={p: i for i, p in enumerate(pieces)}, rank={m: i for i, m in enumerate(merges)})
    table, found = [], [[] for _ in strings]
    for row in SCHEMES:
        names, stages, add_bos, taken = (list(row) + [False, False])[:4]
        compiled = [regex.compile(s.replace(r"\s", r"\p{White_Space}").replace(r"\S", r"\P{White_Space}")) for s in stages]
        kept, first = [], None
        for name in names.split():
            path = tmp / f"{name}.gguf"
            write(path, tokens, types, lines, name, bos=begin)
            try:
                m = Llama(path, vocab_only=True)
            except AssertionError:
                print("llama.cpp does not know", name); continue
            got = [m.tokenize(s, False, False) for s in strings]
            says = m.lc.llama_vocab_get_add_bos(m.vocab)
            m.close()
            assert says == add_bos, (name, says)
            if first is not None and got != first:
                print(name, "is not", kept[0])
                for s, x, y in zip(strings, got, first):
                    if x != y:
                        print("  ", repr(s), [pieces[t] for t in x], [pieces[t] for t in y])
                continue
            first = got
            kept.append(name)
        table.append(dict(names=kept, add_bos=add_bos))
        for i, s in enumerate(strings):
            own = [t for p in parts(s, compiled) for t in encode(p, vocab, taken)]
            if own != first[i]:
                print(kept[0], repr(s)); print("   published", [pieces[t].decode("utf8", "replace") for t in own]); print("   llama.cpp", [pieces[t].decode("utf8", "replace") for t in first[i]])
            found[i].append((own, first[i]))
    rows = []
    for s, all in zip(strings, found):
        distinct, by, differ = [], [], {}
        for n, (own, other) in enumerate(all):
            if own not in distinct:
                distinct.append(own)
            by.append(distinct.index(own))
            if other != own:
                differ[table[n]["names"][0]] = other
        rows.append(dict(text=s, ids=distinct, by=by, **({"llama_cpp": differ} if differ else {})))
    compact = lambda x: json.dumps(x, ensure_ascii=True, separators=(",", ":"))
    body = ",\n".join(compact(r) for r in rows)
    head = dict(letters="".join(letters), merges=merges, whole=[spell(w.encode()) for w in whole], begin=tokens[begin], schemes=table)
    text = compact(head)[:-1] + ',"strings":[\n' + body + "\n]}\n"
    (out / "schemes.json").write_text(text)
    print(len(merges), "merges,", len(strings), "strings,", sum(len(t["names"]) for t in table), "names,", len(text), "bytes")


MARKERS = ["<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>", "<turn|>", "<|tool_response>",
           "<|endoftext|>", "</s>", "<eos>", "<|eom_id|>", "<EOT>", "_<EOT>", "▁<EOT>", "[EOT]", "[EOS]", "[e~[", "<|end_of_text|>", "<end_of_utterance>",
           "<｜end▁of▁sentence｜>", "<|end_of_role|>", "<|start_of_role|>", "<|im_start|>", "<|start|>", "<|message|>", "<|channel|>", "<|constrain|>",
           "<|eot|>", "<|eom|>", "<|endofprompt|>", "<|user|>", "<|assistant|>", "<|system|>", "[/INST]", "<s>", "<|begin_of_text|>", "[|endofturn|]",
           "<|fim_pad|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>", "<fim-pad>", "<fim_pad>", "<PAD>", "<REPO>",
           "<reponame>", "<|fim_repo|>", "<fim-repo>", "[PAD]", "<pad>", "<|plamo:eos|>", "<|return_of|>", "<turn>"]
SETS = [                                            # tokens, the type of the markers, the stated end
    *[([m], 3, None) for m in MARKERS],
    *[([m], 1, None) for m in MARKERS],
    (["<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|call|>", "<|endoftext|>"], 3, "<|return|>"),
    (["<|end|>", "<|endoftext|>", "<|assistant|>", "<|user|>", "<|system|>"], 3, "<|endoftext|>"),
    (["<|end|>", "<|calls|>", "<|flush|>", "<|endoftext|>"], 3, "<|endoftext|>"),
    (["<|end|>", "<|call|>", "<|flush|>"], 3, "<|flush|>"),
    (["<|end|>", "<|calls|>", "<|return|>"], 3, "<|return|>"),
    (["<|end|>", "<|return|>", "<|flush|>"], 3, "<|return|>"),
    (["<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]"], 3, "</s>"),
    (["<|end_of_text|>", "<|start_of_role|>", "<|end_of_role|>"], 3, "<|end_of_text|>"),
    (["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>", "<|start_header_id|>", "<|end_header_id|>"], 3, "<|eot_id|>"),
    (["<|begin_of_text|>", "<|end_of_text|>", "<|eot|>", "<|eom|>"], 3, "<|eot|>"),
    (["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"], 3, "<eos>"),
    (["<bos>", "<eos>", "<|turn>", "<turn|>", "</s>", "<|tool_response>"], 3, "<eos>"),
    (["<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"], 3, "<｜end▁of▁sentence｜>"),
    (["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"], 3, "<|im_end|>"),
    (["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|endofprompt|>"], 3, "<|endoftext|>"),
]


def ends(out, tmp):
    letters, rows, grouped = alphabet(), [], []
    for n, (markers, kind, stated) in enumerate(SETS):
        tokens = letters + ["<|nothing|>"] + markers
        path = tmp / f"ends{n}.gguf"
        ids = dict(eos=tokens.index(stated) if stated else 256)
        write(path, tokens, [1] * 256 + [3] + [kind] * len(markers), ["a b"], "gpt-2", bos=256, **ids)
        m = Llama(path, vocab_only=True)
        eog = [t for i, t in enumerate(tokens) if i >= 256 and m.lc.llama_vocab_is_eog(m.vocab, i)]
        m.close()
        eog = [t for t in eog if stated or t != "<|nothing|>"]
        rows.append(dict(markers=markers, control=kind == 3, stated=stated, ends=eog))
    text = "[\n" + ",\n".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) for r in rows) + "\n]\n"
    (out / "ends.json").write_text(text)
    print(len(rows), "vocabularies,", len(text.encode()), "bytes")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("outdir", type=Path)
    a = ap.parse_args()
    a.outdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as tmp:
        schemes(a.outdir, Path(tmp))
        ends(a.outdir, Path(tmp))


if __name__ == "__main__":
    sys.exit(main())
