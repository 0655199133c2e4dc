"""Runs ranks of rank_reads side by side: all are ready before the first begins."""

import subprocess
import time


class Ranks:
    """The processes of the commands, when all of them are ready. What they say on stderr goes to a
    file `errors`."""

    def __init__(self, commands, errors):
        self.errors = errors
        self.processes = []
        try:
            with open(errors, "w", encoding="utf-8") as file:
                for command in commands:
                    self.processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                           stderr=file, text=True))
            for process in self.processes:
                if process.stdout.readline() != "ready\n":
                    raise self.failure("a rank did not start")
        except BaseException:
            self.end()
            raise

    def failure(self, what):
        with open(self.errors, encoding="utf-8") as file:
            return RuntimeError(f"{what}: {file.read()}")

    def end(self):
        for process in self.processes:
            process.kill()
            process.communicate()

    def run(self):
        """Seconds until the last one is done, their CPU seconds, and what they found together:
        samples, bytes, sum."""
        try:
            start = time.monotonic()
            for process in self.processes:
                process.stdin.write("go\n")
                process.stdin.flush()
            found = [0, 0, 0, 0]
            for process in self.processes:
                numbers = process.stdout.readline().split()
                if len(numbers) != len(found):
                    raise self.failure("a rank failed")
                found = [one + int(more) for one, more in zip(found, numbers)]
            seconds = time.monotonic() - start
        finally:
            self.end()
        samples, total, words, cpu_us = found
        return seconds, cpu_us / 1e6, (samples, total, words % (1 << 64))
