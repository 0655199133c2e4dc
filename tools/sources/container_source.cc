#include "sources/container_source.h"

#include "base/text.h"

namespace spk {

Result<FoundSet> open_containers(const SourceLook& look, const ContainerFormat& format,
                                 std::shared_ptr<Spool> spool) {
  SPK_ASSIGN(FoundContainers found,
             find_containers(look.files, look.is_folder, format.zlib_too, format.empty_too,
                             format.is_plain, format.what));
  if (found.paths.empty()) {
    return Status(Code::kNotThisFormat, format.none).at_path(escape_bytes(look.path));
  }
  FoundSet set;
  set.others = found.others;
  SPK_ASSIGN(set.files, ContainerSet::open(std::move(found.paths), std::move(spool),
                                           format.zlib_too, format.is_plain));
  return set;
}

std::vector<std::string> ContainerSource::paths() const {
  std::vector<std::string> paths;
  for (uint32_t file = 0; file < files_->count(); ++file) paths.push_back(files_->path(file));
  return paths;
}

}  // namespace spk
