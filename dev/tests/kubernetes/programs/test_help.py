"""Tests the help for terminals: `-h` for a first start, `--help` for all settings, both within 80 columns."""

import re
import subprocess
import unittest

from test_check_config import PROGRAMS, SERVICES

ONE_PROGRAM = "vestibule"
COLUMNS = 80
FIRST_SETTINGS_MAX = 14


def printed(program, *arguments):
    command = [PROGRAMS / program, *arguments]
    return subprocess.run(command, env={"COLUMNS": str(COLUMNS)}, capture_output=True, text=True, check=True).stdout


def commands_of(text):
    """Lists the command names below `Commands:`."""
    section = re.search(r"^Commands:\n((?:  .*\n|\n)+)", text, re.M)
    return re.findall(r"^  (\w[\w-]*)", section[1], re.M) if section else []


def every_help(program, *command):
    """Maps command lines to help texts, for a program and all its commands."""
    texts = {(program, *command, flag): printed(program, *command, flag) for flag in ("-h", "--help")}
    for name in commands_of(texts[(program, *command, "--help")]):
        texts |= every_help(program, *command, name)
    return texts


class Help(unittest.TestCase):
    def test_no_line_is_wider_than_a_terminal(self):
        for program in (*SERVICES.values(), ONE_PROGRAM):
            texts = every_help(program)
            self.assertGreaterEqual(len(texts), 4, "no command was found")
            for command, text in texts.items():
                with self.subTest(command=" ".join(command)):
                    self.assertEqual([line for line in text.splitlines() if len(line) > COLUMNS], [])

    def test_short_help_lists_the_settings_of_a_first_start(self):
        for program in (*SERVICES.values(), ONE_PROGRAM):
            with self.subTest(program=program):
                short, long = (set(re.findall(r"\[env:\s+(\w+)", printed(program, flag))) for flag in ("-h", "--help"))
                self.assertIn("OIDC_ISSUER_URL", short)
                self.assertLessEqual(len(short), FIRST_SETTINGS_MAX)
                self.assertLess(short, long)


if __name__ == "__main__":
    unittest.main()
