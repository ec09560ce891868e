#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/file_system.hpp"

namespace tpudist::test {

// Passes all operations on to the real file system, and calls `before` with the name of the
// operation and the file before each: "create", "write" (twice, after each half), "sync", "close",
// "rename", "remove", "sync_file", "sync_directory". An operation throws what `before` throws. As
// thread-safe as `before`.
class WatchedFileSystem : public FileSystem {
 public:
  using Before = std::function<void(const std::string& name, const std::filesystem::path& path)>;

  explicit WatchedFileSystem(Before before) : before_(std::move(before)) {}

  std::unique_ptr<WritableFile> create(const std::filesystem::path& path) override {
    before_("create", path);
    return std::make_unique<File>(before_, path, posix_file_system().create(path));
  }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    before_("rename", from);
    posix_file_system().rename(from, to);
  }
  void remove(const std::filesystem::path& path) override {
    before_("remove", path);
    posix_file_system().remove(path);
  }
  void sync_file(const std::filesystem::path& path) override {
    before_("sync_file", path);
    posix_file_system().sync_file(path);
  }
  void sync_directory(const std::filesystem::path& path) override {
    before_("sync_directory", path);
    posix_file_system().sync_directory(path);
  }

 private:
  class File : public WritableFile {
   public:
    File(const Before& before, std::filesystem::path path, std::unique_ptr<WritableFile> file)
        : before_(before), path_(std::move(path)), file_(std::move(file)) {}
    void write(std::span<const std::byte> bytes) override {
      const std::size_t half = bytes.size() / 2;
      file_->write(bytes.first(half));
      before_("write", path_);
      file_->write(bytes.subspan(half));
      before_("write", path_);
    }
    void sync() override {
      before_("sync", path_);
      file_->sync();
    }
    void close() override {
      before_("close", path_);
      file_->close();
    }

   private:
    const Before& before_;
    const std::filesystem::path path_;
    const std::unique_ptr<WritableFile> file_;
  };

  const Before before_;
};

}  // namespace tpudist::test
