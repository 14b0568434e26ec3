"""Our tokenizers beside the `tokenizers` package: trained ones of each kind, over 20,000 texts; classes and normal forms of characters.

    oracle_test.py TOKENIZER_DUMP [TEST…]
"""
import importlib.util
import itertools
import pathlib
import sys
import tempfile
import unicodedata
import unittest

if importlib.util.find_spec("tokenizers") is None:
    print("tokenizer oracle: skipped: the package tokenizers is not installed (scripts/setup test)")
    sys.exit(77)

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from oracle_support import GPT2, LLAMA3, QWEN2, SPACE_MARK, changed, compare, made_lines, real_lines, texts

PROGRAM = sys.argv[1]
COUNT = 20000
VOCABULARY = 1500


def training_lines():
    lines = list(itertools.islice(real_lines(), 4000))
    return lines + [line.decode("utf-8", "replace") for line in made_lines(1000, seed=7)]


def trained(tokenizer, trainer_type=trainers.BpeTrainer, **options):
    options = {"vocab_size": VOCABULARY, "show_progress": False, **options}
    tokenizer.train_from_iterator(training_lines(), trainer_type(**options))
    return tokenizer


def byte_level(pre_tokenizer, normalizer=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    return trained(tokenizer, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<s>", "</s>"])


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)])


BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


def sentence_piece(prepend=True, pre_tokenizer=None, decoder=None):
    """Bytes are tokens of the vocabulary but not special ones, as in Llama's."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    steps = [normalizers.Prepend(SPACE_MARK)] if prepend else []
    tokenizer.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE_MARK)])
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    strip = [decoders.Strip(" ", 1, 0)] if prepend else []
    tokenizer.decoder = decoder or decoders.Sequence([decoders.Replace(SPACE_MARK, " "), decoders.ByteFallback(), decoders.Fuse(), *strip])
    # Without a pre-tokenizer whole lines would be words, and learning them would take minutes.
    tokenizer.pre_tokenizer = pre_tokenizers.Split(SPACE_MARK, "merged_with_next")
    trained(tokenizer, special_tokens=["<unk>", "<s>", "</s>", *BYTE_TOKENS], limit_alphabet=150)

    def change(document):
        document["added_tokens"] = document["added_tokens"][:3]
        document["pre_tokenizer"] = None

    tokenizer = changed(tokenizer, change)
    if pre_tokenizer:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)])
    return tokenizer


def metaspace(scheme, with_split=True):
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=with_split)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme, split=with_split)
    if not with_split:
        learned = metaspace(scheme)
        learned.pre_tokenizer, learned.decoder = tokenizer.pre_tokenizer, tokenizer.decoder
        return learned
    return trained(tokenizer, special_tokens=["<unk>", "<s>"], limit_alphabet=120)


def unigram(byte_fallback):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokens = ["<unk>", "<s>", "</s>", *(BYTE_TOKENS if byte_fallback else [])]
    # Lines with characters that the vocabulary shall not know are left out.
    trainer = trainers.UnigramTrainer(vocab_size=VOCABULARY, special_tokens=tokens, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator([line for line in training_lines() if line.isascii()], trainer)

    def change(document):
        document["model"]["byte_fallback"] = byte_fallback
        document["added_tokens"] = document["added_tokens"][:3]

    return changed(tokenizer, change)


def bert(**options):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trained(tokenizer, trainers.WordPieceTrainer, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def with_added_tokens(tokenizer):
    """Every combination of what an added token can say."""
    contents = iter(["<|x|>", "<|x|>>", "world", "the", "'ll", "文字", " \n", "ab", "Hello", "<s><s>", "é", "...", "</s>x", "12", "[MASK]", "🙂"])
    for lstrip, rstrip, single_word, normalized in itertools.product((False, True), repeat=4):
        token = AddedToken(next(contents), lstrip=lstrip, rstrip=rstrip, single_word=single_word, normalized=normalized)
        tokenizer.add_special_tokens([token]) if lstrip == normalized else tokenizer.add_tokens([token])
    return tokenizer


class Trained(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = texts(COUNT)
        cls.held = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.held.name)

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def check(self, name, tokenizer, items=None, **options):
        count = compare(self, PROGRAM, tokenizer, self.texts if items is None else items, self.folder, name, **options)
        self.assertGreater(count, 200)

    def test_gpt2(self):
        self.check("gpt2", byte_level(pre_tokenizers.ByteLevel(False)))

    def test_prefix_space_and_template(self):
        tokenizer = byte_level(pre_tokenizers.ByteLevel(True))
        tokenizer.post_processor = processors.Sequence([
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(single="<s> $A </s>", pair="$A $B", special_tokens=[("<s>", 0), ("</s>", 1)])])
        self.check("prefix", tokenizer, self.texts[:6000])
        self.check("prefix_plain", tokenizer, self.texts[-3000:], no_special=True, no_parse=True)

    def test_llama3(self):
        self.check("llama3", byte_level(split(LLAMA3), ignore_merges=True))

    def test_qwen2(self):
        self.check("qwen2", byte_level(split(QWEN2), normalizers.NFC()))

    def test_smollm(self):
        digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(False)])
        self.check("smollm", byte_level(digits))

    def test_sentence_piece(self):
        tokenizer = sentence_piece()
        self.check("spm", tokenizer)
        self.check("spm_plain", tokenizer, self.texts[-3000:], no_special=True, no_parse=True)

    def test_sentence_piece_without_prefix(self):
        self.check("gemma", sentence_piece(False, pre_tokenizers.Split(" ", "merged_with_previous")), self.texts[-9000:])

    def test_metaspace(self):
        for scheme, with_split in itertools.product(("always", "first", "never"), (True, False)):
            with self.subTest(scheme=scheme, split=with_split):
                self.check(f"metaspace_{scheme}_{with_split}", metaspace(scheme, with_split), self.texts[-4000:])

    def test_unigram(self):
        for byte_fallback in (False, True):
            with self.subTest(byte_fallback=byte_fallback):
                tokenizer = unigram(byte_fallback)
                if byte_fallback:
                    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
                self.check(f"unigram_{byte_fallback}", tokenizer, self.texts[-9000:])

    def test_bert(self):
        self.check("bert", bert())

    def test_bert_options(self):
        for number, options in enumerate([{"lowercase": False}, {"clean_text": False, "strip_accents": False}, {"handle_chinese_chars": False}]):
            with self.subTest(**options):
                self.check(f"bert_{number}", bert(**options), self.texts[-3000:])

    def test_added_tokens(self):
        items = self.texts[-6000:]
        normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.StripAccents()])
        self.check("added", with_added_tokens(byte_level(pre_tokenizers.ByteLevel(False), normalizer)), items)
        self.check("added_no_parse", with_added_tokens(byte_level(pre_tokenizers.ByteLevel(True))), items, no_parse=True)
        self.check("added_metaspace", with_added_tokens(metaspace("first")), items)

    def test_other_steps(self):
        steps = [pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("contiguous"),
                 pre_tokenizers.Sequence([pre_tokenizers.Punctuation("removed"), pre_tokenizers.Digits(False)])]
        steps += [pre_tokenizers.Split("a", behavior, invert) for behavior in ("removed", "isolated", "merged_with_previous",
                  "merged_with_next", "contiguous") for invert in (False, True)]
        steps += [pre_tokenizers.Split(Regex(GPT2), "removed", True), pre_tokenizers.Split(Regex(LLAMA3), "contiguous")]
        for number, step in enumerate(steps):
            with self.subTest(step=number):
                tokenizer = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##a": 2, "the": 3, "##e": 4, "1": 5, "##1": 6}, unk_token="[UNK]"))
                tokenizer.pre_tokenizer = step
                tokenizer.normalizer = normalizers.Strip(left=number % 2 == 0, right=True)
                self.check(f"step_{number}", tokenizer, self.texts[-1500:])

    def test_odd_decoders(self):
        tokenizer = sentence_piece()
        chains = [[decoders.Fuse(), decoders.Replace(SPACE_MARK, "--"), decoders.Strip("-", 2, 0)],
                  [decoders.Strip(SPACE_MARK, 1, 0), decoders.ByteFallback()], [decoders.Replace("e", ""), decoders.Metaspace()],
                  [decoders.WordPiece("a", True)]]
        for number, chain in enumerate(chains):
            with self.subTest(chain=number):
                tokenizer.decoder = decoders.Sequence(chain)
                self.check(f"decoder_{number}", tokenizer, self.texts[-1500:])


class Characters(unittest.TestCase):
    """Every character that Python's Unicode knows, beside what the package does with it. Later versions know more."""

    @classmethod
    def setUpClass(cls):
        ideographs = {*range(0x3500, 0x4D00), *range(0x4F00, 0x9F00), *range(0xAD00, 0xD700), *range(0x17100, 0x18700), *range(0x20100, 0x2F800),
                      *range(0x2FB00, 0x31300), *range(0xE100, 0xF800), *range(0xF0000, 0x110000)}
        cls.known = [chr(c) for c in range(0x110000) if c not in ideographs and unicodedata.category(chr(c)) not in ("Cn", "Cs")]
        cls.held = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.held.name)

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def test_normalizers(self):
        self.assertGreater(len(self.known), 30000)
        alphabet = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
        items = ["|".join(self.known[i: i + 40]).encode() for i in range(0, len(self.known), 40)]
        for step in (normalizers.NFC(), normalizers.NFD(), normalizers.NFKC(), normalizers.NFKD(), normalizers.Lowercase(),
                     normalizers.StripAccents(), normalizers.BertNormalizer()):
            with self.subTest(step=type(step).__name__):
                tokenizer = Tokenizer(models.BPE(alphabet, []))
                tokenizer.normalizer = step
                tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(False, use_regex=False)
                tokenizer.decoder = decoders.ByteLevel()
                compare(self, PROGRAM, tokenizer, items, self.folder, type(step).__name__)

    def test_classes(self):
        """How many words a text has tells the class of a character."""
        items = [f"a{c}b 1{c}2 {c}{c}x".encode() for c in self.known]
        for number, step in enumerate((pre_tokenizers.Split(Regex(GPT2), "isolated"), pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                       pre_tokenizers.Whitespace(), pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Digits(False))):
            with self.subTest(step=number):
                tokenizer = Tokenizer(models.BPE({"<unk>": 0}, [], unk_token="<unk>", fuse_unk=True))
                tokenizer.pre_tokenizer = step
                compare(self, PROGRAM, tokenizer, items, self.folder, f"classes_{number}")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
