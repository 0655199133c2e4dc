# ctest: timeout=300
"""Real pictures, packed, verified against their source, extracted and compared byte for byte. Skipped
where there are none: STRIPEPACK_TEST_DATA names a folder with imagenet-sample.tar and cifar10-test.tar."""

import filecmp
import os
import pathlib
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from packing import DONE, SKIPPED, PackTest, main, run  # noqa: E402

DATA = pathlib.Path(os.environ.get("STRIPEPACK_TEST_DATA",
                                   pathlib.Path(__file__).resolve().parents[3] / "shared" / "data"))


class RealDataTest(PackTest):
    def same_files(self, left, right):
        compared = filecmp.dircmp(left, right)
        self.assertEqual((compared.left_only, compared.right_only), ([], []))
        _, mismatch, errors = filecmp.cmpfiles(left, right, compared.common_files, shallow=False)
        self.assertEqual((mismatch, errors), ([], []))
        return len(compared.common_files) + sum(
            self.same_files(os.path.join(left, name), os.path.join(right, name))
            for name in compared.common_dirs)

    def round_trip(self, name, count):
        with tarfile.open(DATA / (name + ".tar")) as archive:
            archive.extractall(self.dir)
        source = self.path(name)
        self.pack(source, self.out)
        self.expect(run("verify", self.out, "--decode", "--against", source), DONE, "ok:",
                    "decode: ok", "against: ok")
        self.expect(run("extract", self.out, self.path("back")), DONE)
        self.assertEqual(self.same_files(source, self.path("back")), count)

    def test_imagenet_sample(self):
        self.round_trip("imagenet-sample", 250)

    def test_cifar10_test(self):
        self.round_trip("cifar10-test", 10000)


if __name__ == "__main__":
    if not (DATA / "imagenet-sample.tar").exists() or not (DATA / "cifar10-test.tar").exists():
        print("no real pictures at %s; STRIPEPACK_TEST_DATA=DIR names them" % DATA)
        sys.exit(SKIPPED)
    main()
