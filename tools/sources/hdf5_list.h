// The listing of an HDF5 file (hdf5.h).
#pragma once

#include <string>

#include "sources/hdf5_file.h"
#include "sources/source.h"

namespace spk {

// What does not lie in the file as it is needed goes to SPOOLED_NAME in the spool, unless that is
// there already. Without a spool it goes nowhere.
Result<Listing> list_hdf5(const PackOptions& options, const std::string& path, Spool* spool,
                          const std::string& spooled_name, const Source::Sink& sink);

}  // namespace spk
