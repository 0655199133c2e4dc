# ctest: timeout=600
"""An installed stripepack serves programs outside its tree, from wherever its prefix is moved to."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

SOURCE = pathlib.Path(os.environ["STRIPEPACK_SOURCE"])
BUILD = pathlib.Path(os.environ["STRIPEPACK_BUILD"])
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]

C_PROJECT = """cmake_minimum_required(VERSION 3.16)
project(consumer C CXX)
find_package(stripepack 0.1 REQUIRED)
foreach(language IN ITEMS c cc)
  add_executable(consumer_${language} consumer.${language})
  target_compile_options(consumer_${language} PRIVATE -Wall -Wextra -Wpedantic -Werror)
  target_link_libraries(consumer_${language} PRIVATE stripepack::stripepack)
endforeach()
set_target_properties(consumer_c PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
"""


def run(*command, env=None, **options):
    """The output; a failure carries everything that was printed."""
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, **(env or {})}, **options)
    if result.returncode != 0:
        raise AssertionError(f"{command} gave {result.returncode}:\n{result.stdout}")
    return result.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="stripepack-install-")
        root = pathlib.Path(cls.folder.name)
        run("cmake", "--install", BUILD, "--prefix", root / "first")
        # Nothing may remember where it was installed to.
        cls.prefix = root / "moved to here"
        (root / "first").rename(cls.prefix)
        cls.lib = next(cls.prefix.glob("lib*/libstripepack.so")).parent
        cls.work = root / "work"
        cls.work.mkdir()
        cls.pack = cls.make_pack()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def make_pack(cls):
        """A pack of 3 samples, made by the installed program."""
        pictures = cls.work / "pictures"
        cls.bytes = 0
        for name in ("cat", "dog"):
            (pictures / name).mkdir(parents=True)
        for name in ("cat/a", "cat/b", "dog/c"):
            pictures.joinpath(f"{name}.png").write_bytes(png(ord(name[0]), 0, ord(name[-1])))
            cls.bytes += len(png(ord(name[0]), 0, ord(name[-1])))
        run(cls.prefix / "bin/stripepack", "pack", pictures, cls.work / "pack")
        return cls.work / "pack"

    def test_only_the_c_abi_is_visible(self):
        said = run("nm", "-D", "--defined-only", self.lib / "libstripepack.so")
        symbols = [line.split()[1:] for line in said.splitlines()]
        functions = [name for kind, name in symbols if kind == "T"]
        self.assertGreater(len(functions), 5)
        other = [name for kind, name in symbols
                 if not name.startswith("spk_") and (kind, name) != ("A", "STRIPEPACK_0")]
        self.assertEqual(other, [])

    def test_library_is_lean(self):
        needed = run("readelf", "-d", self.lib / "libstripepack.so")
        for library in ("tbb", "jpeg", "png", "webp", "tiff", "gif", "crypto"):
            self.assertNotIn(f"lib{library}", needed)

    def test_public_headers_only(self):
        headers = sorted(path.name for path in (self.prefix / "include").rglob("*")
                         if path.is_file())
        self.assertEqual(headers, ["error.hpp"] + ["image.h"] * self.has_images +
                         ["stripepack.h", "stripepack.hpp"])

    def test_program_runs_from_the_prefix(self):
        said = run(self.prefix / "bin/stripepack", "--version", env={"LD_LIBRARY_PATH": ""})
        self.assertIn("0.1.0", said)

    @property
    def has_images(self):
        """Whether the picture library was built."""
        return (self.lib / "libstripepack-image.so").exists()

    def test_picture_library_is_apart(self):
        if not self.has_images:
            self.skipTest("no libjpeg")
        library = self.lib / "libstripepack-image.so"
        said = run("nm", "-D", "--defined-only", library)
        symbols = [line.split()[1:] for line in said.splitlines()]
        self.assertGreater(len([name for kind, name in symbols if kind == "T"]), 5)
        self.assertEqual([name for kind, name in symbols if not name.startswith("spk_image_") and
                          (kind, name) != ("A", "STRIPEPACK_IMAGE_0")], [])
        self.assertNotIn("libstripepack.so", run("readelf", "-d", library))

    def test_picture_library_by_find_package(self):
        if not self.has_images:
            self.skipTest("no libjpeg")
        folder = self.work / "find_image"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(IMAGE_PROJECT)
        (folder / "consumer.c").write_text(IMAGE_CONSUMER)
        run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", folder / "build")
        self.assertEqual(run(folder / "build/consumer"), "not_this_format 2\n")

    def test_picture_library_by_pkg_config(self):
        if not self.has_images or not shutil.which("pkg-config"):
            self.skipTest("no libjpeg, or no pkg-config")
        plain = self.work.parent / "plain-image"
        plain.symlink_to(self.prefix)
        folder = self.work / "pkg_config_image"
        folder.mkdir()
        (folder / "consumer.c").write_text(IMAGE_CONSUMER)
        env = {"PKG_CONFIG_PATH": str(plain / self.lib.relative_to(self.prefix) / "pkgconfig")}
        flags = run("pkg-config", "--cflags", "--libs", "stripepack-image", env=env).split()
        program = folder / "consumer"
        run("cc", "-std=c11", *WARNINGS, folder / "consumer.c", "-o", program, *flags,
            f"-Wl,-rpath,{self.lib}")
        self.assertEqual(run(program), "not_this_format 2\n")

    def check_consumer(self, program):
        self.assertEqual(run(program, self.pack), f"3 samples, {self.bytes} bytes\n")

    def write_consumers(self, folder):
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(C_PROJECT)
        (folder / "consumer.c").write_text(C_CONSUMER)
        (folder / "consumer.cc").write_text(CPP_CONSUMER)

    def test_find_package(self):
        folder = self.work / "find_package"
        self.write_consumers(folder)
        run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", folder / "build")
        self.check_consumer(folder / "build/consumer_c")
        self.check_consumer(folder / "build/consumer_cc")

    def test_pkg_config(self):
        if not shutil.which("pkg-config"):
            self.skipTest("no pkg-config")
        # pkg-config escapes spaces for a shell; this one has to be free of them.
        plain = self.work.parent / "plain"
        plain.symlink_to(self.prefix)
        folder = self.work / "pkg_config"
        self.write_consumers(folder)
        env = {"PKG_CONFIG_PATH": str(plain / self.lib.relative_to(self.prefix) / "pkgconfig")}
        self.assertEqual(run("pkg-config", "--modversion", "stripepack", env=env), "0.1.0\n")
        flags = run("pkg-config", "--cflags", "--libs", "stripepack", env=env).split()
        for compiler, standard, name in (("cc", "c11", "consumer.c"),
                                         ("c++", "c++20", "consumer.cc")):
            program = folder / (name + ".out")
            run(compiler, f"-std={standard}", *WARNINGS, folder / name, "-o", program, *flags,
                f"-Wl,-rpath,{self.lib}")
            self.check_consumer(program)

    def test_samples(self):
        folder = self.work / "samples"
        installed = self.prefix / "share/doc/stripepack/samples"
        run("cmake", "-S", installed, "-B", folder, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        run("cmake", "--build", folder)
        for program in ("train_c", "train_cc"):
            said = run(folder / program, self.pack)
            self.assertIn("cat", said)
            self.assertIn("dog", said)

    def test_documents(self):
        share = self.prefix / "share"
        for name in ("man/man1/stripepack.1", "doc/stripepack/LICENSE",
                     "doc/stripepack/docs/commands/pack.md"):
            self.assertTrue((share / name).is_file(), name)
        manual = (share / "man/man1/stripepack.1").read_text()
        commands = run(self.prefix / "bin/stripepack", "--help").partition("Subcommands:")[2]
        for command in (line.split()[0] for line in commands.splitlines() if line.strip()):
            self.assertRegex(manual, rf'(?m)^\.BI {command} "',
                             f"docs/stripepack.1 lacks the command {command}")

    def test_python(self):
        packages = list(self.prefix.glob("lib*/python*/site-packages"))
        if not packages:
            self.skipTest("the Python module was not built")
        said = run(sys.executable, "-c", PYTHON_CONSUMER, self.pack,
                   env={"PYTHONPATH": str(packages[0]), "LD_LIBRARY_PATH": ""})
        self.assertEqual(said, f"3 samples, {self.bytes} bytes\n")


def png(red, green, blue):
    """A picture of one pixel."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(bytes([0, red, green, blue]))) + chunk(b"IEND", b""))


C_CONSUMER = r"""
#include <stdio.h>
#include <stripepack/stripepack.h>

int main(int argc, char** argv) {
  spk_error error = {.struct_size = sizeof error};
  spk_pack* pack = NULL;
  if (argc != 2 || spk_open(argv[1], NULL, &pack, &error) != SPK_OK) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  uint32_t image = 0;
  uint64_t bytes = 0, count = 0, sample = 0, size = 0;
  spk_iter* iter = NULL;
  if (spk_field_find(pack, "image", &image, &error) != SPK_OK) return 2;
  if (spk_iter_open(pack, 0, 1, &iter, &error) != SPK_OK) return 3;
  while (spk_iter_next(iter, &sample, &error) == SPK_OK) {
    const void* data = NULL;
    if (spk_iter_blob(iter, image, &data, &size, &error) != SPK_OK) return 4;
    bytes += size;
    ++count;
  }
  spk_iter_close(iter);
  spk_close(pack);
  printf("%u samples, %u bytes\n", (unsigned)count, (unsigned)bytes);
  return 0;
}
"""
CPP_CONSUMER = r"""
#include <iostream>
#include <stripepack/stripepack.hpp>

int main(int, char** argv) {
  const stripepack::Pack pack = stripepack::Pack::open(argv[1]);
  const std::uint32_t image = pack.field("image");
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < pack.size(); ++i) bytes += pack.read(image, i).size();
  std::cout << pack.size() << " samples, " << bytes << " bytes\n";
}
"""
IMAGE_PROJECT = """cmake_minimum_required(VERSION 3.16)
project(consumer C)
find_package(stripepack 0.1 REQUIRED COMPONENTS image)
add_executable(consumer consumer.c)
target_compile_options(consumer PRIVATE -Wall -Wextra -Wpedantic -Werror)
target_link_libraries(consumer PRIVATE stripepack::image)
set_target_properties(consumer PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
"""
IMAGE_CONSUMER = r"""
#include <stdio.h>
#include <stripepack/image.h>

int main(void) {
  uint8_t pixels[12];
  spk_image_ops ops = {.struct_size = sizeof ops, .kind = SPK_IMAGE_RESIZE, .width = 2, .height = 2};
  spk_image_item item = {.data = "no picture", .size = 10, .out = pixels, .capacity = 12};
  spk_image_pool* pool = NULL;
  if (spk_image_pool_open(2, &pool, NULL) != SPK_OK) return 1;
  if (spk_image_decode_many(pool, &item, 1, &ops, NULL) != SPK_PARTIAL) return 2;
  printf("%s %u\n", item.code == SPK_NOT_THIS_FORMAT ? "not_this_format" : "?",
         spk_image_pool_threads(pool));
  spk_image_pool_close(pool);
  return 0;
}
"""
PYTHON_CONSUMER = r"""
import sys
import stripepack
pack = stripepack.open(sys.argv[1])
print(len(pack), "samples,", sum(len(pack.read(i)) for i in range(len(pack))), "bytes")
"""

if __name__ == "__main__":
    unittest.main()
