// make_pack golden NAME OUT | random SEED OUT | names
// Makes OUT/pack and OUT/expected.json; `names` lists the golden packs.
#include <charconv>
#include <cstdio>
#include <string>

#include "base/text.h"
#include "golden/recipe.h"
#include "io/atomic_file.h"
#include "io/directory.h"

namespace spk::test {
namespace {

Status run(const std::string& kind, const std::string& which, const std::string& out) {
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
  return write_file_atomically(dir, "expected.json", as_bytes(expected));
}

}  // namespace
}  // namespace spk::test

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  if (argc == 2 && kind == "names") {
    for (const std::string& name : spk::test::golden_names()) std::printf("%s\n", name.c_str());
    return 0;
  }
  if (argc != 4 || (kind != "golden" && kind != "random")) {
    std::fprintf(stderr, "usage: make_pack golden NAME OUT | random SEED OUT | names\n");
    return 2;
  }
  const spk::Status status = spk::test::run(kind, argv[2], argv[3]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_pack: %s\n", status.to_string().c_str());
  return 4;
}
