#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/file_system.hpp"

namespace tpudist::test {

// The configurations of the row `id` of a submission's file, fastest first; empty without that row.
inline std::vector<int> submission_row(const std::filesystem::path& csv, const std::string& id) {
  std::vector<int> configs;
  std::istringstream lines(read_text_file(csv));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(id + ",")) continue;
    std::istringstream numbers(line.substr(id.size() + 1));
    for (std::string number; std::getline(numbers, number, ';');)
      configs.push_back(std::stoi(number));
  }
  return configs;
}

}  // namespace tpudist::test
