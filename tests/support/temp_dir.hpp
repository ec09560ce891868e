#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace tpudist::test {

// A new empty folder that is removed with its content at the end of its scope. Under MPI every rank
// gets a folder of its own.
class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "tpudist-test-XXXXXX").string();
    if (!mkdtemp(name.data())) {
      throw std::system_error(errno, std::generic_category(), "cannot make the folder " + name);
    }
    path_ = name;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // The path of `name` in this folder; makes nothing.
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace tpudist::test
