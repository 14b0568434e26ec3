"""CMakePresets.json: CMake reads it, each preset sets what it says, and those without torch configure.

    presets_test.py CMAKE
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else "cmake"
WANTED = {
    "dev": {"CMAKE_BUILD_TYPE": "RelWithDebInfo", "CMAKE_CXX_FLAGS_RELWITHDEBINFO": "-O1 -g1 -DNDEBUG", "HALFTONE_UNITY": "OFF"},
    "release": {"CMAKE_BUILD_TYPE": "Release"},
    "no-torch": {"CMAKE_BUILD_TYPE": "Release", "HALFTONE_TORCH": "OFF"},
    "asan": {"HALFTONE_TORCH": "OFF", "HALFTONE_SANITIZE": "address,undefined"},
    "tsan": {"HALFTONE_TORCH": "OFF", "HALFTONE_SANITIZE": "thread"},
    "asan-torch": {"CMAKE_BUILD_TYPE": "Release", "HALFTONE_SANITIZE": "address,undefined,float-cast-overflow"},
}


PRESETS = {preset["name"]: preset for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}


def variables(name):
    """The cache variables of a configure preset, inherited ones too."""
    preset = PRESETS[name]
    inherited = variables(preset["inherits"]) if "inherits" in preset else {}
    return inherited | preset.get("cacheVariables", {})


def cache(folder):
    return dict(re.findall(r"^(\w+):\w+=(.*)$", (folder / "CMakeCache.txt").read_text(), re.M))


def run(*arguments):
    return subprocess.run([CMAKE, *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


class Presets(unittest.TestCase):
    def test_cmake_lists_each_kind(self):
        for kind in ("configure", "build", "test"):
            self.assertEqual(sorted(re.findall(r'^  "([^"]+)"', run(f"--list-presets={kind}"), re.M)), sorted(WANTED), kind)

    def test_variables(self):
        for name, wanted in WANTED.items():
            self.assertLessEqual(wanted.items(), variables(name).items(), name)

    def test_ninja_and_a_folder_of_their_own(self):
        self.assertEqual(PRESETS["base"]["generator"], "Ninja")
        self.assertEqual(PRESETS["base"]["binaryDir"], "${sourceDir}/build-${presetName}")
        for name, preset in PRESETS.items():
            if name != "base":
                self.assertIn("inherits", preset, name)
                self.assertFalse({"generator", "binaryDir"} & preset.keys(), name)

    def test_presets_without_torch_configure(self):
        # tsan differs from asan by one variable, dev and release need torch: too slow for here.
        flags = {"no-torch": "-O2", "asan": "-fsanitize=address,undefined"}
        with tempfile.TemporaryDirectory() as folder:
            runs = {name: subprocess.Popen([CMAKE, "--preset", name, "-B", f"{folder}/{name}"], cwd=ROOT, stdout=subprocess.PIPE,
                                           stderr=subprocess.STDOUT, text=True) for name in flags}
            output = {name: process.communicate()[0] for name, process in runs.items()}
            for name, process in runs.items():
                self.assertEqual(process.returncode, 0, output[name])
                build = pathlib.Path(folder) / name
                self.assertLessEqual(variables(name).items(), cache(build).items(), name)
                commands = json.loads((build / "compile_commands.json").read_text())
                self.assertTrue(commands, name)
                for command in commands:
                    self.assertIn(flags[name], command["command"])
                    self.assertNotIn("/src/graph/", command["file"])
                self.assertEqual([c["file"] for c in commands if "fsanitize" in c["command"]] == [], name == "no-torch")


if __name__ == "__main__":
    unittest.main()
