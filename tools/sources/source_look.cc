#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>

#include "base/text.h"
#include "io/file.h"
#include "sources/source_kind.h"

namespace spk {

namespace {

constexpr size_t kMostPaths = 1'000'000;

// "000..099": false where TEXT is no range.
bool expand_range(std::string_view text, std::vector<std::string>* out) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return false;
  const std::string_view first_text = text.substr(0, dots);
  const std::string_view last_text = text.substr(dots + 2);
  uint64_t first = 0, last = 0;
  const auto parse = [](std::string_view digits, uint64_t* value) {
    const char* const end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, *value);
    return error == std::errc() && at == end;
  };
  if (!parse(first_text, &first) || !parse(last_text, &last) || last < first) return false;
  if (last - first >= kMostPaths) return false;
  const bool padded = first_text.size() > 1 && first_text.front() == '0';
  for (uint64_t number = first; number <= last; ++number) {
    std::string digits = str_cat(number);
    if (padded && digits.size() < first_text.size()) {
      digits.insert(0, first_text.size() - digits.size(), '0');
    }
    out->push_back(std::move(digits));
  }
  return true;
}

// What a brace group stands for; empty where it is no group ("{x}").
std::vector<std::string> expand_group(std::string_view text) {
  std::vector<std::string> words;
  if (expand_range(text, &words)) return words;
  if (text.find(',') == std::string_view::npos) return {};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

Status glob_files(const std::string& pattern, std::vector<std::string>* files) {
  glob_t found = {};
  const int code = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  const struct Free {
    glob_t* found;
    ~Free() { ::globfree(found); }
  } free_at_end{&found};
  if (code == GLOB_NOMATCH) {
    return Status(Code::kNotFound, "no file matches").at_path(escape_bytes(pattern));
  }
  if (code != 0) {
    return Status(Code::kIo, "cannot look for files that match").at_path(escape_bytes(pattern));
  }
  for (size_t i = 0; i < found.gl_pathc; ++i) files->emplace_back(found.gl_pathv[i]);
  return {};
}

bool has_wildcard(const std::string& path) { return path.find_first_of("*?[") != path.npos; }

Status look_into_folder(SourceLook* look) {
  look->is_folder = true;
  SPK_ASSIGN(const Directory folder, Directory::open(look->path));
  SPK_ASSIGN(const std::vector<DirectoryEntry> entries, folder.list());
  for (const DirectoryEntry& entry : entries) {
    if (entry.name.starts_with('.')) continue;
    EntryType type = entry.type;
    if (type == EntryType::kSymlink || type == EntryType::kOther) {
      struct stat info;
      if (fstatat(folder.fd(), entry.name.c_str(), &info, 0) != 0) continue;
      type = S_ISDIR(info.st_mode)   ? EntryType::kDirectory
             : S_ISREG(info.st_mode) ? EntryType::kRegular
                                     : EntryType::kOther;
    }
    if (type == EntryType::kDirectory) look->has_folders = true;
    if (type == EntryType::kRegular) look->files.push_back(folder.path_of(entry.name));
  }
  return {};
}

Status read_head(SourceLook* look) {
  SPK_ASSIGN(const File file, File::open_read(look->files[0]));
  look->head.resize(SourceLook::kHeadBytes);
  const auto got = file.read_some(0, look->head);
  look->head.resize(got.ok() ? *got : 0);
  return got.status();
}

}  // namespace

bool SourceLook::has_file(std::string_view name) const {
  const std::string path_of_it = str_cat(path, path.ends_with('/') ? "" : "/", name);
  return std::binary_search(files.begin(), files.end(), path_of_it);
}

Result<std::vector<std::string>> expand_braces(const std::string& text) {
  for (size_t open = text.find('{'); open != text.npos; open = text.find('{', open + 1)) {
    const size_t close = text.find('}', open);
    if (close == text.npos) break;
    const auto words = expand_group(std::string_view(text).substr(open + 1, close - open - 1));
    if (words.empty()) continue;
    // What follows is the same for each word.
    SPK_ASSIGN(const auto rests, expand_braces(text.substr(close + 1)));
    if (words.size() * rests.size() > kMostPaths) {
      return invalid_argument(str_cat("stands for more than ", kMostPaths, " paths"))
          .at_path(escape_bytes(text));
    }
    std::vector<std::string> all;
    for (const std::string& word : words) {
      for (const std::string& rest : rests) all.push_back(text.substr(0, open) + word + rest);
    }
    return all;
  }
  return std::vector<std::string>{text};
}

Result<SourceLook> look_at_source(const std::string& path) {
  SourceLook look;
  look.path = path;
  struct stat info;
  if (stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      SPK_TRY(look_into_folder(&look));
    } else if (S_ISREG(info.st_mode)) {
      look.files.push_back(path);
    } else {
      return Status(Code::kNotThisFormat, "neither a folder nor a regular file")
          .at_path(escape_bytes(path))
          .with_hint("a list is read twice: write it to a file first");
    }
  } else {
    const Status missing =
        Status::from_errno(errno, "cannot read the source").at_path(escape_bytes(path));
    SPK_ASSIGN(const std::vector<std::string> words, expand_braces(path));
    if (missing.code() != Code::kNotFound || (words.size() == 1 && !has_wildcard(path))) {
      return missing;
    }
    for (const std::string& word : words) {
      if (has_wildcard(word)) {
        SPK_TRY(glob_files(word, &look.files));
      } else {
        look.files.push_back(word);
      }
    }
  }
  if (!look.files.empty()) {
    Status status = read_head(&look);
    // In a folder it may be a picture among others, whose own matter that is.
    if (!status.ok() && !look.is_folder) return status;
  }
  return look;
}

}  // namespace spk
