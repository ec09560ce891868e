#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/hdf5/hdf5.hpp"

namespace tpudist {

// Creates an HDF5 file in memory only. `where` names the file in messages. `bytes` is the expected
// size; HDF5 allocates and clears memory in steps of this size.
Hdf5Id create_hdf5_in_memory(const std::string& where, std::size_t bytes);
// Returns the bytes of such a file, with `room` free bytes in front.
std::vector<std::byte> hdf5_image(const Hdf5Id& file, std::size_t room, std::string_view where);

// The names of the datasets and groups in a group, in order.
std::vector<std::string> link_names(const Hdf5Id& group, std::string_view where);
// All attributes of an object, as numbers.
std::map<std::string, double> read_number_attributes(const Hdf5Id& object, std::string_view where);

}  // namespace tpudist
