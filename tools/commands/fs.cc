#include "commands/fs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "commands/options.h"
#include "commands/stripe_text.h"
#include "container/layout_record.h"
#include "io/file.h"
#include "io/stripes.h"
#include "pipeline/quota.h"

namespace spk {

namespace {

struct Found {
  FileSystemInfo fs;
  bool is_folder = false;
  StripeLayout layout;
  std::string layout_problem;  // an answer that made no sense
  uint32_t targets = 0;
  QuotaLeft quota;
  DirectAlignment direct;
};

Result<Found> look(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return io_error(errno, "cannot open", path);
  const File opened = File::adopt(fd, path);
  Found found;
  struct stat info;
  if (::fstat(fd, &info) != 0) return io_error(errno, "cannot stat", path);
  found.is_folder = S_ISDIR(info.st_mode);
  found.fs = detect_filesystem(fd);
  auto layout = read_stripes(fd, found.fs);
  if (layout.ok()) {
    found.layout = std::move(layout).value();
  } else {
    found.layout_problem = layout.status().message();
  }
  found.targets = count_targets(fd, found.fs);
  found.quota = quota_left(fd);
  found.direct = direct_alignment(fd);
  return found;
}

class FsCommand : public Command {
 public:
  void add_to(CLI::App& app) override {
    sub_ = app.add_subcommand("fs", "Tell what file system a place is on, and its stripe layout");
    sub_->add_option("PATH", path_, "A folder, or a file")->required();
    add_json_option(*sub_);
  }
  bool chosen() const override { return sub_->parsed(); }

  int run(Ui& ui) override {
    auto found = look(path_);
    if (!found.ok()) return ui.fail(found.status());
    ui.json_mode() ? print_json(*found, ui) : print_text(*found, ui);
    return kExitDone;
  }

 private:
  static void print_text(const Found& found, Ui& ui) {
    const auto line = [&ui](std::string_view name, const std::string& value) {
      (void)ui.out(str_cat(name, std::string(13 - name.size(), ' '), value));
    };
    line("file system", str_cat(found.fs.name, found.fs.network ? ", served by other machines"
                                                                : ", of this machine"));
    line("free", format_size(found.fs.free_bytes));
    if (found.quota.bytes) line("quota left", format_size(*found.quota.bytes));
    line("blocks", format_size(found.fs.block_bytes));
    line("direct I/O", found.direct.offset_bytes == 0
                           ? std::string("alignment not told; 4 KiB serves")
                           : str_cat("offsets by ", found.direct.offset_bytes, ", memory by ",
                                     found.direct.memory_bytes, " bytes"));
    const std::string of = found.is_folder ? "of files made here: " : "of this file: ";
    line("layout",
         of + (found.layout_problem.empty() ? stripe_text(found.layout) : found.layout_problem));
    if (found.targets != 0) line("targets", std::to_string(found.targets));
  }

  void print_json(const Found& found, Ui& ui) const {
    JsonWriter json = json_line("fs");
    json.member_bytes("path", path_).member("file_system", found.fs.name);
    json.member("network", found.fs.network).member("free_bytes", found.fs.free_bytes);
    if (found.quota.bytes) json.member("quota_left_bytes", *found.quota.bytes);
    json.member("block_bytes", found.fs.block_bytes);
    json.member("direct_offset_bytes", found.direct.offset_bytes);
    json.member("direct_memory_bytes", found.direct.memory_bytes);
    json.key("layout");
    write_stripe_layout(json, found.layout);
    if (!found.layout_problem.empty()) json.member("layout_problem", found.layout_problem);
    json.member("targets", found.targets);
    (void)ui.json(json.end_object());
  }

  CLI::App* sub_ = nullptr;
  std::string path_;
};

}  // namespace

std::unique_ptr<Command> make_fs_command() { return std::make_unique<FsCommand>(); }

}  // namespace spk
