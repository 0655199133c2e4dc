// Files as samples: opening, looking at and reading them by paths of any length and any bytes,
// relative to a root folder. Shared by the sources whose samples are single files.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>

#include "io/directory.h"
#include "sources/source.h"

namespace spk {

// Why an entry that is listed can never become a sample.
inline constexpr char kRejectNotFound[] = "not found";
inline constexpr char kRejectDenied[] = "permission denied";
inline constexpr char kRejectNotRegular[] = "not a regular file";
inline constexpr char kChangedSourceHint[] =
    "the source changed since it was listed; --restart begins anew with it as it is";
inline constexpr char kRejectNoClass[] = "no class folder";

// As openat and fstatat (symlinks followed), but a path longer than the system takes at once is
// walked in pieces. open_below: a descriptor (close-on-exec), or -1 and errno. stat_below: 0, or -1
// and errno.
int open_below(int root_fd, std::string_view path, int flags);
int stat_below(int root_fd, std::string_view path, struct stat* out);

int64_t mtime_ns_of(const struct stat& info) noexcept;

// Looks at a listed file: sets size and mtime, or `reject` where it is absent, out of reach or not
// a regular file (which is never opened). Anything else that goes wrong is an error.
Status stat_entry(int root_fd, SampleEntry* entry);
// What stat_entry rejects for this errno; null where it is the machine's trouble.
const char* reject_of_errno(int os_errno) noexcept;

// Source::open for such files. `told_by`: the list that size and mtime are from, where one told
// them; empty where the files were looked at.
Result<std::unique_ptr<SampleHandle>> open_file_sample(const Directory& root,
                                                       const SampleEntry& entry,
                                                       const std::string& told_by = {});

// Whether an mtime as listed is that of a file now. A list may have been written with fewer digits
// than the file system keeps: only the digits that are there are compared.
bool same_mtime(int64_t listed_ns, int64_t actual_ns) noexcept;

}  // namespace spk
