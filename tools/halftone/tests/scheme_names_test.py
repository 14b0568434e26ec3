"""Every scheme name that any command prints is known to every command that takes one, or refused with the reason."""
import concurrent.futures
import functools
import json
import re

from cli_support import FOLDER, CliTest, export, main, run

export("block")

WRONG = "int9xx"
# How each command is given a scheme. All of them look at the name before they look for the model.
TAKERS = {
    "quantize --scheme": lambda name: ("quantize", "nowhere.pt2", "--scheme", name, "-o", "never.ht"),
    "quantize --override": lambda name: ("quantize", "nowhere.pt2", "--scheme", "int8wo", "--override", f"up={name}", "--dry-run"),
    "diagnose --scheme": lambda name: ("diagnose", "nowhere.pt2", "--scheme", name),
    "chat --scheme": lambda name: ("chat", "nowhere.pt2", "--scheme", name),
    "eval --scheme": lambda name: ("eval", "nowhere.pt2", "--text", "nowhere.pt2", "--scheme", name),
    "eval --reference-scheme": lambda name: ("eval", "nowhere.pt2", "--text", "nowhere.pt2", "--reference-scheme", name),
    "generate --scheme": lambda name: ("generate", "nowhere.pt2", "-p", "x", "--scheme", name),
    "tune --schemes": lambda name: ("tune", "nowhere.pt2", "--schemes", name, "--dry-run"),
    "tune --by-submodule": lambda name: ("tune", "nowhere.pt2", "--by-submodule", "--schemes", name),
    "autoquant --schemes": lambda name: ("autoquant", "nowhere.pt2", "--schemes", name, "--plan-out", "never.json"),
    "bench --schemes": lambda name: ("bench", "--schemes", name, "--list"),
    "kernels --explain": lambda name: ("kernels", "--explain", "1", "64", "64", name),
}
# Those that take several names in one call.
SEVERAL = ("quantize --override", "tune --schemes", "tune --by-submodule", "autoquant --schemes", "bench --schemes")
REASONS = ("halftone generate MODEL", "halftone ptq MODEL", "halftone autoquant MODEL", "halftone tune", "halftone run --backend")


def names_in(text):
    return {name.strip() for name in re.split(r"[,\s]+", text) if name.strip()}


def from_schemes():
    report = json.loads(run("schemes", "--json").stdout)
    names = {name for scheme in report["schemes"] for name in scheme["names"]} | set(report["measured"])
    names |= {scheme["name"] for scheme in report.get("calibrated", [])}
    # Of each table the first column, without heading and rule; names stand there with commas between them.
    for table in run("schemes").stdout.split("\n\n"):
        rows = [line for line in table.splitlines() if line.strip()]
        if len(rows) > 2 and rows[0].startswith("scheme "):
            names |= {name for row in rows[2:] for name in names_in(re.split(r"\s{2,}", row)[0])}
    return names


def from_tune():
    names = {each["name"] for each in json.loads(run("tune", "block.pt2", "--dry-run", "--no-cache", "--json").stdout)["candidates"]}
    shown = run("tune", "block.pt2", "--dry-run", "--no-cache").stdout
    assert all(name in shown for name in names), shown
    return names


def from_autoquant():
    run("autoquant", "block.pt2", "--time-limit", "2", "--no-race", "--no-cache", "--plan-out", "plan.json")
    layers = json.loads((FOLDER / "plan.json").read_text())["layers"]
    return {layer["choice"] for layer in layers} | {each["scheme"] for layer in layers for each in layer["candidates"]}


def from_quantize():
    """What the table says that a weight becomes, where that is a name and no config with its fields."""
    names = set()
    for scheme in ("int8wo", "int8dq", '{"type": "Int8DynamicActivationInt8WeightConfig", "weight_bits": 7}',
                   '{"type": "Int4WeightOnlyConfig", "activations": "int8"}'):
        rows = [line.split() for line in run("quantize", "block.pt2", "--scheme", scheme, "--dry-run").stdout.splitlines()]
        names |= {row[5] for row in rows if len(row) > 5 and row[1] == "linear" and "(" not in row[5]}
    return names


def from_help():
    """Examples and default lists of all commands."""
    whole = run("--help").stdout
    commands = [line.split()[0] for line in whole.split("Subcommands:\n", 1)[1].split("\n\n", 1)[0].splitlines()]
    names = set()
    for command in commands:
        text = run(command, "--help").stdout
        names |= set(re.findall(r"halftone .*--scheme (\S+)", text)) | set(re.findall(r"--explain \d+ \d+ \d+ (\S+)", text))
        names |= {name for given in re.findall(r"halftone .*--schemes (\S+)", text) for name in names_in(given)}
        names |= set(re.findall(r"--override '\S+=(\S+)'", text))
        if command in ("autoquant", "bench"):  # "--schemes LIST  what, (default: these)" up to the next option
            option = re.search(r"\n +--schemes LIST(.*?)\n +-", text, re.DOTALL).group(1)
            lists = re.findall(r"[a-z0-9-]+(?:,\s?[a-z0-9-]+){2,}", option)
            assert lists, option
            names |= {name for given in lists for name in names_in(given)}
    return names


def from_refusals():
    """What each command lists where a name is wrong."""
    names = set()
    for command in TAKERS.values():
        known = run(*command(WRONG)).stderr.split("known: ")
        assert len(known) == 2, known
        names |= names_in(known[1])
    return names


@functools.cache
def printed_names():
    sources = (from_schemes, from_tune, from_autoquant, from_quantize, from_help, from_refusals)
    names = {source.__name__: source() for source in sources}
    for source, found in names.items():
        assert found, source
    return sorted(set().union(*names.values()))


def config_names():
    """Those that stand for a config of weights: all commands take them."""
    return [name for scheme in json.loads(run("schemes", "--json").stdout)["schemes"] for name in scheme["names"]]


def ask(case):
    """(names, taker) → exit code and stderr."""
    names, taker = case
    if taker == "quantize --override":
        overrides = [word for name in names for word in ("--override", f"up={name}")]
        done = run("quantize", "nowhere.pt2", "--scheme", "int8wo", *overrides, "--dry-run")
    else:
        done = run(*TAKERS[taker](",".join(names)))
    return done.returncode, done.stderr


def is_taken(answer):
    """0, or 1 because there is no such model: the name was not the problem."""
    return answer[0] == 0 or answer[0] == 1 and re.search("nowhere.pt2: .*[Nn]o such file", answer[1]) is not None


@functools.cache
def answers():
    """(name, taker) → exit code and stderr.

    The program takes most of a second to start: commands that take several names get all configs at once, and one by one only where
    that is refused.
    """
    names = [*printed_names(), "int8", "int4wo:64", WRONG]
    together = [name for name in names if name in set(config_names())]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        at_once = dict(zip(SEVERAL, pool.map(ask, [(together, taker) for taker in SEVERAL])))
        known = {(name, taker): answer for taker, answer in at_once.items() if is_taken(answer) for name in together}
        cases = [(name, taker) for name in names for taker in TAKERS if (name, taker) not in known]
        return known | dict(zip(cases, pool.map(ask, [([name], taker) for name, taker in cases])))


class SchemeNames(CliTest):
    def is_taken(self, name, taker):
        return is_taken(answers()[name, taker])

    def test_the_names_are_those_that_people_see(self):
        self.assertLessEqual({"int8wo", "int8dq-7bit", "int4wo-int8act", "int8static", "int8static-7bit", "autoquant", "fp32",
                              "int8dynamic", "noquant", "bf16wo", "fp8dq", "int8-7bit"}, set(printed_names()))
        self.assertNotIn(WRONG, printed_names())

    def test_each_is_known_or_refused_with_the_reason(self):
        for name in printed_names():
            for taker in TAKERS:
                with self.subTest(f"{taker} {name}"):
                    code, message = answers()[name, taker]
                    if self.is_taken(name, taker):
                        continue
                    self.assertEqual(code, 2, message)
                    self.assertNotIn("unknown", message)
                    self.assertNotIn("there is no", message)
                    self.assertIn(f'"{name}"', message)
                    self.assertTrue(any(reason in message for reason in REASONS), message)

    def test_each_config_is_taken_by_all(self):
        for name in config_names():
            for taker in TAKERS:
                with self.subTest(f"{taker} {name}"):
                    self.assertTrue(self.is_taken(name, taker), answers()[name, taker])

    def test_what_needs_data_is_refused_where_there_is_none(self):
        for name, bits in (("int8static", "8"), ("int8static-7bit", "7")):
            for taker in TAKERS:
                with self.subTest(f"{taker} {name}"):
                    if taker in ("tune --schemes", "kernels --explain"):
                        self.assertTrue(self.is_taken(name, taker), answers()[name, taker])
                        continue
                    code, message = answers()[name, taker]
                    self.assertEqual(code, 2)
                    self.assertIn("halftone ptq MODEL --data DATA.safetensors", message)
                    self.assertIn(f"--weight-bits {bits}", message)

    def test_a_wrong_name_is_unknown_everywhere(self):
        for taker in TAKERS:
            with self.subTest(taker):
                code, message = answers()[WRONG, taker]
                self.assertEqual(code, 2)
                self.assertIn(f'unknown scheme "{WRONG}"', message)

    def test_int8_is_a_name_of_kernels_alone(self):
        for taker in TAKERS:
            with self.subTest(taker):
                if taker == "kernels --explain":
                    self.assertTrue(self.is_taken("int8", taker))
                    continue
                code, message = answers()["int8", taker]
                self.assertEqual(code, 2)
                self.assertIn("say int8dq here, or int8wo", message)

    def test_groups_stand_behind_a_colon(self):
        for taker in TAKERS:
            self.assertTrue(self.is_taken("int4wo:64", taker), answers()["int4wo:64", taker])
        report = json.loads(self.ok("quantize", "block.pt2", "--scheme", "int4wo:64", "--dry-run", "--json").stdout)
        self.assertEqual({layer["config"]["group_size"] for layer in report["layers"]}, {64})

    def test_quantize_does_what_each_config_says(self):
        for scheme in json.loads(run("schemes", "--json").stdout)["schemes"]:
            if scheme["names"][0] == "noquant":
                continue
            # Two layers: one by --scheme, one by --override.
            command = ("quantize", "block.pt2", "--scheme", scheme["names"][0], "--override", f"down={scheme['names'][-1]}")
            report = json.loads(self.ok(*command, "--dry-run", "--json").stdout)
            self.assertEqual([layer["config"] for layer in report["layers"]], [scheme["config"]] * 2, scheme["names"])


if __name__ == "__main__":
    main()
