"""What the labs share: a lab is brought up once for the tests of a file, and ended whatever happens."""

import os
import subprocess
import sys

from packing import SKIPPED, PackTest, main


class Lab:
    """start() and stop() are the lab's; stop() ends also what is half up."""

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()


class LabTest(PackTest):
    make_lab = None  # of the lab's class
    lab = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        try:
            cls.lab = cls.make_lab().__enter__()
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            # A machine on which these daemons do not run says nothing of stripepack.
            print("skipped: the lab did not come up: %s" % error, flush=True)
            os._exit(SKIPPED)

    @classmethod
    def tearDownClass(cls):
        cls.lab.__exit__()
        super().tearDownClass()


def run_tests(why_not):
    """The tests of the file that calls, or why there is no lab."""
    if why_not:
        print("skipped: " + why_not)
        sys.exit(SKIPPED)
    main()
