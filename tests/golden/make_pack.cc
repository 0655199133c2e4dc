// make_pack golden NAME OUT | random SEED OUT | verify PACK | names
// Makes OUT/pack and OUT/expected.json and verifies the pack; `names` lists the golden packs.
#include <charconv>
#include <cstdio>
#include <string>

#include "base/text.h"
#include "container/verify.h"
#include "golden/recipe.h"
#include "io/atomic_file.h"
#include "io/directory.h"

namespace spk::test {
namespace {

Status verify(const std::string& path) {
  std::string found;
  SPK_ASSIGN(const VerifyReport report, verify_pack(path, {}, [&](const Damage& damage) {
               if (found.empty())
                 found = str_cat(damage.file, " @", damage.offset, ": ", damage.what);
             }));
  return report.ok() ? Status() : damaged(found).at_path(path);
}

Status make(const std::string& kind, const std::string& which, const std::string& out) {
  Recipe recipe;
  if (kind == "golden") {
    SPK_ASSIGN(recipe, golden_recipe(which));
  } else {
    uint64_t seed = 0;
    const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), seed);
    if (error != std::errc() || end != which.data() + which.size()) {
      return invalid_argument(str_cat("'", which, "' is not a seed"));
    }
    recipe = random_recipe(seed);
  }
  SPK_ASSIGN(const Directory dir, Directory::create(out));
  SPK_ASSIGN(const std::string expected, make_pack(out + "/pack", std::move(recipe)));
  SPK_TRY(write_file_atomically(dir, "expected.json", as_bytes(expected)));
  return verify(out + "/pack");
}

}  // namespace
}  // namespace spk::test

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (argc == 2 && kind == "names") {
    for (const std::string& name : spk::test::golden_names()) std::printf("%s\n", name.c_str());
    return 0;
  }
  const bool verifies = argc == 3 && kind == "verify";
  if (!verifies && (argc != 4 || (kind != "golden" && kind != "random"))) {
    std::fprintf(stderr,
                 "usage: make_pack golden NAME OUT | random SEED OUT | verify PACK | names\n");
    return 2;
  }
  const spk::Status status =
      verifies ? spk::test::verify(argv[2]) : spk::test::make(kind, argv[2], argv[3]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_pack: %s\n", status.to_string().c_str());
  return 4;
}
