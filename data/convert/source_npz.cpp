#include "data/convert/source_npz.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/log.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "data/hlo/hlo_features.hpp"
#include "data/hlo/layout_configs.hpp"
#include "data/hlo/tuned_npz.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    if (error) throw IoError("there is no folder for temporary files: set TMPDIR");
    std::string name = (parent / "tpudist-tuning-XXXXXX").string();
    if (!::mkdtemp(name.data())) {
      throw IoError(
          fmt::format("cannot make a folder in {}: {}", parent.string(), std::strerror(errno)));
    }
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string plain_name(std::string name) {
  constexpr std::size_t kLongest = 100;
  name.resize(std::min(name.size(), kLongest));
  for (char& c : name) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '.' || c == '-';
    if (!plain) c = '_';
  }
  return name;
}

// N of "random:N" or "random:N:SEED", and the seed.
std::pair<std::int64_t, std::uint64_t> random_request(const std::string& text) {
  const char* const end = text.data() + text.size();
  std::int64_t count = 0;
  std::uint64_t seed = 1;
  auto read = std::from_chars(text.data() + std::strlen("random:"), end, count);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == ':')
    read = std::from_chars(read.ptr + 1, end, seed);
  constexpr std::int64_t kMost = 1'000'000;
  if (read.ec != std::errc() || read.ptr != end || count < 1 || count > kMost)
    throw ConfigError(fmt::format(
        "--configs {}: give random:N or random:N:SEED with N from 1 to {}", text, kMost));
  return {count, seed};
}

MadeConfigs make_configs(const HloFile& file, const fs::path& source,
                         const ConfigRequest& request) {
  if (file.size() != 1 || file.kind() == HloFile::Kind::tuned_modules)
    throw DataError(
        fmt::format("{}: is {}; configurations can be made for one module whose layouts "
                    "are configured",
                    source.string(), kind_name(file.kind())));
  std::vector<std::string> warnings;
  MadeConfigs made;
  made.space = known_space(file.module(0), request.assigned, file.where(0), warnings);
  for (const std::string& warning : warnings) spdlog::warn("{}: {}", source.string(), warning);
  if (made.space.nodes.empty())
    throw DataError(
        fmt::format("{}: no convolution, dot or reshape: no layout can be configured; "
                    "see `tpudist inspect {}`",
                    source.string(), shell_word(source.string())));
  if (request.configs == "default") {
    made.configs = {made.space.standard()};
  } else if (request.configs == "neighbours") {
    made.configs = neighbour_configs(made.space);
  } else if (request.configs.starts_with("random:")) {
    const auto [count, seed] = random_request(request.configs);
    constexpr double kMostStates = 1e8;  // 2 bytes each, and 72 in the NPZ file
    if (static_cast<double>(count) * static_cast<double>(made.space.nodes.size()) > kMostStates)
      throw ConfigError(
          fmt::format("--configs {}: {} configurations of {} operations are more than "
                      "{:.0f} states; take fewer",
                      request.configs, count, made.space.nodes.size(), kMostStates));
    made.configs = random_configs(made.space, count, seed);
    if (std::ssize(made.configs) < count)
      spdlog::info("{}: --configs {}: the module has {} configurations, all are taken",
                   source.string(), request.configs, made.configs.size());
  } else {
    if (!fs::is_regular_file(request.configs)) {
      const std::string words[] = {"default", "neighbours", "random:N"};
      throw ConfigError(
          fmt::format("--configs {}: is no file; give default, neighbours, random:N, "
                      "random:N:SEED or a JSON file{}",
                      request.configs, did_you_mean(request.configs, words)));
    }
    made.configs = json_configs(made.space, read_text_file(request.configs), request.configs);
  }
  return made;
}

// False for an unreadable file; its reader reports the error.
bool begins_as_zip(const fs::path& file) {
  char begin[2] = {};
  return std::ifstream(file, std::ios::binary).read(begin, 2) && begin[0] == 'P' && begin[1] == 'K';
}

}  // namespace

bool is_source(const fs::path& file) {
  const bool of_macos = file.filename().string().starts_with("._");
  return !of_macos && (is_npz(file) || file.extension() == ".pb");
}

bool holds_npz(const fs::path& file) {
  return is_npz(file) || begins_as_zip(file);
}

SourceNpz::SourceNpz(const fs::path& source, const Collection& collection,
                     const ConfigRequest& request)
    : source_(source) {
  const std::string stem = source.stem().string();
  if (!request.configs.empty()) {
    if (collection.is_tile())
      throw ConfigError("layouts are made for runs that rank layouts; this run ranks tile sizes");
    tuning_ = std::make_unique<HloFile>(source);
    made_ = std::make_shared<const MadeConfigs>(make_configs(*tuning_, source, request));
    names_ = {stem};
    return;
  }
  if (holds_npz(source)) {
    names_ = {stem};
    return;
  }
  tuning_ = std::make_unique<HloFile>(source);
  const HloFile::Kind own = tuning_->kind();
  const auto kind =
      collection.is_tile() ? HloFile::Kind::tuned_modules : HloFile::Kind::tuned_module;
  if (own != kind) {
    const bool measured = own == HloFile::Kind::tuned_module || own == HloFile::Kind::tuned_modules;
    throw DataError(fmt::format(
        "{}: is {}; {}", source.string(), kind_name(own),
        measured || collection.is_tile()
            ? fmt::format("a collection {} takes {} alone", collection.name, kind_name(kind))
            : "this file has a program but no configurations: add --configs neighbours or "
              "random:1000 to `tpudist rank`, or use `tpudist search`"));
  }
  for (int i = 0; i < tuning_->size(); ++i) {
    names_.push_back(
        collection.is_tile()
            ? fmt::format("{}_{}_{}", stem, plain_name(tuning_->name(i)), tuning_->number(i))
            : stem);
  }
  if (names_.empty()) {
    throw DataError(
        fmt::format("{}: the data set's rules keep none of its {} modules: each needs two "
                    "runs that all have a tile size, one of them the default",
                    source.string(), tuning_->dropped_modules()));
  }
}

int SourceNpz::find(const std::string& name) const {
  const auto found = std::ranges::find(names_, name);
  return found == names_.end() ? -1 : static_cast<int>(found - names_.begin());
}

void SourceNpz::with_npz(int index, const std::function<void(const fs::path&)>& use) const {
  if (!tuning_) return use(source_);
  const TemporaryFolder folder;
  const fs::path npz = folder.path() / (names_[index] + ".npz");
  if (made_) {
    const std::string where = tuning_->where(index);
    const HloGraph graph = featurise(tuning_->module(index).module, where);
    for (const std::string& part : unknown_parts(graph)) spdlog::warn("{}: {}", where, part);
    write_configured_npz(graph, made_->space, made_->configs, npz);
  } else {
    write_tuned_npz(tuning_->module(index), tuning_->where(index), npz);
    tuning_->require_unchanged();
  }
  try {
    use(npz);
  } catch (const DataError& error) {
    std::string message = error.what();
    if (const auto at = message.find(npz.string()); at != std::string::npos)
      message.replace(at, npz.string().size(), tuning_->where(index));
    throw DataError(message);
  }
}

std::vector<std::int64_t> SourceNpz::config_numbers(int index) const {
  std::vector<std::int64_t> numbers;
  if (!tuning_ || made_) return numbers;
  for (const TuningRun& run : tuning_->runs(index)) numbers.push_back(run.number);
  return numbers;
}

std::optional<std::int64_t> SourceNpz::standard(int index) const {
  const auto place_in = [](const auto& list, const auto& found) -> std::optional<std::int64_t> {
    if (found == list.end()) return std::nullopt;
    return found - list.begin();
  };
  if (made_)
    return place_in(made_->configs, std::ranges::find(made_->configs, made_->space.standard()));
  if (!tuning_) return std::nullopt;
  const std::vector<TuningRun> runs = tuning_->runs(index);
  return place_in(runs, std::ranges::find_if(runs, &TuningRun::is_default));
}

std::string SourceNpz::left_out() const {
  if (!tuning_ || made_) return "";
  std::int64_t runs = 0;
  for (int i = 0; i < tuning_->size(); ++i) tuning_->runs(i, &runs);
  if (runs + tuning_->dropped_modules() == 0) return "";
  return fmt::format("{}: {} modules and {} runs are left out by the data set's rules",
                     source_.string(), tuning_->dropped_modules(), runs);
}

}  // namespace tpudist
