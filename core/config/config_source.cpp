#include "core/config/config_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/numbers.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxScalarBytes = std::size_t{1} << 20;
constexpr int kMaxFiles = 64;

[[noreturn]] void fail(const YamlLocation& place, const std::string& message) {
  throw ConfigError(fmt::format("{}: {}", place.to_string(), message));
}

// --- ${env:NAME,default} ---

bool is_variable_name(std::string_view name) {
  constexpr std::string_view kAllowed =
      "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return !name.empty() && name[0] > '9' && name.find_first_not_of(kAllowed) == name.npos;
}

// The value of `NAME` or `NAME,default`. Throws a message without a position.
std::string environment_value(std::string_view request) {
  const std::size_t comma = request.find(',');
  const std::string name(request.substr(0, comma));
  if (!is_variable_name(name))
    throw ConfigError(fmt::format("\"{}\" is not a variable's name", name));
  if (const char* value = std::getenv(name.c_str()); value && *value) {
    if (!is_utf8(value)) throw ConfigError(fmt::format("the variable {} is not UTF-8 text", name));
    return value;
  }
  if (comma != std::string_view::npos) return std::string(request.substr(comma + 1));
  throw ConfigError(fmt::format(
      "the environment variable {} is not set; set it, or give a default: ${{env:{},default}}",
      name, name));
}

// Replaces each ${env:...} once; `$${env:` becomes `${env:`.
std::string expand_environment(std::string_view text) {
  constexpr std::string_view kOpen = "${env:", kLiteral = "$${env:";
  std::string expanded;
  for (std::size_t i = 0; i < text.size();) {
    if (text.substr(i, kLiteral.size()) == kLiteral) {
      expanded += kOpen;
      i += kLiteral.size();
    } else if (text.substr(i, kOpen.size()) == kOpen) {
      const std::size_t end = text.find('}', i);
      if (end == std::string_view::npos) throw ConfigError("${env: without its }");
      expanded += environment_value(text.substr(i + kOpen.size(), end - i - kOpen.size()));
      i = end + 1;
    } else {
      expanded += text[i++];
    }
    if (expanded.size() > kMaxScalarBytes)
      throw ConfigError("too long a text from the environment");
  }
  return expanded;
}

void expand_environment(YamlValue& value, YamlMistakes& mistakes) {
  try {
    if (value.text.find("${env:") != std::string::npos) value.text = expand_environment(value.text);
  } catch (const ConfigError& error) {
    mistakes.add(value.place, error.what());
    value.unusable = true;
  }
  for (YamlValue& item : value.items) expand_environment(item, mistakes);
}

// --- include ---

// Reads files and what they include.
class FileLoader {
 public:
  explicit FileLoader(YamlMistakes& mistakes) : mistakes_(mistakes) {}

  YamlValue load(const std::filesystem::path& path) {
    if (++files_ > kMaxFiles) throw ConfigError(fmt::format("more than {} files", kMaxFiles));
    const std::filesystem::path real = std::filesystem::weakly_canonical(path);
    if (std::find(open_.begin(), open_.end(), real) != open_.end()) {
      throw ConfigError(path.string() + " includes itself");
    }
    open_.push_back(real);
    YamlValue value = parse(read_text_file(path, kMaxFileBytes), path.string());
    open_.pop_back();
    return value;
  }

  YamlValue parse(std::string_view text, std::string name) {
    const std::filesystem::path folder = std::filesystem::path(name).parent_path();
    const auto source =
        std::make_shared<YamlLocation::Source>(YamlLocation::Source{std::move(name), sources_++});
    YamlValue value = parse_yaml(text, source, mistakes_);
    if (value.kind == YamlValue::Kind::null) {
      value.kind = YamlValue::Kind::map;
      value.place = {source, 1, 1};
    }
    if (!value.is_map()) fail(value.place, "a configuration is a map of keys");
    return with_includes(std::move(value), folder);
  }

 private:
  YamlValue with_includes(YamlValue value, const std::filesystem::path& folder) {
    const auto include = std::ranges::find(value.items, "include", &YamlValue::key);
    if (include == value.items.end()) return value;
    std::vector<YamlValue> files;
    if (include->kind == YamlValue::Kind::list) {
      files = std::move(include->items);
    } else {
      files.push_back(std::move(*include));
    }
    value.items.erase(include);

    YamlValue base;
    base.kind = YamlValue::Kind::map;
    for (const YamlValue& file : files)
      base = merge_yaml(std::move(base), load_included(file, folder));
    return merge_yaml(std::move(base), std::move(value));
  }

  YamlValue load_included(const YamlValue& file, const std::filesystem::path& folder) {
    if (file.kind != YamlValue::Kind::scalar)
      fail(file.place, "include: needs a file or a list of files");
    std::filesystem::path path;
    try {
      path = (folder / expand_environment(file.text)).lexically_normal();
      return load(path);
    } catch (const std::exception& error) {
      // The message has the position in the included file. Adds the position of the include.
      std::error_code ignored;
      const bool is_there = path.empty() || std::filesystem::exists(path, ignored);
      fail(file.place, fmt::format("cannot include {}: {}{}", file.text, error.what(),
                                   is_there ? "" : near_path(path, is_yaml)));
    }
  }

  YamlMistakes& mistakes_;
  int files_ = 0, sources_ = 0;
  std::vector<std::filesystem::path> open_;
};

// --- key.sub=value ---

class Overrides {
 public:
  explicit Overrides(YamlMistakes& mistakes) : mistakes_(mistakes) {}

  void apply(YamlValue& root, const std::string& assignment) {
    try {
      const std::size_t equals = assignment.find('=');
      if (equals == std::string::npos) throw ConfigError("must be key=value");
      set(root, split(std::string_view(assignment).substr(0, equals), '.'),
          parse_value(assignment.substr(equals + 1)));
    } catch (const ConfigError& error) {
      mistakes_.add({source_}, fmt::format("\"{}\": {}", assignment, error.what()));
    }
  }

 private:
  YamlValue parse_value(const std::string& text) {
    YamlMistakes mistakes;
    YamlValue value;
    try {
      value = parse_yaml(text, source_, mistakes);
    } catch (const ConfigError&) {
      throw ConfigError("the value is not YAML; put quotes around a text with special characters");
    }
    if (!mistakes.empty()) throw ConfigError("a key is given twice");
    move_to_command_line(value);
    return value;
  }

  void move_to_command_line(YamlValue& value) {
    value.place = value.key_place = {source_};
    for (YamlValue& item : value.items) move_to_command_line(item);
  }

  void set(YamlValue& root, const std::vector<std::string>& path, YamlValue value) {
    if (path[0] == "include") throw ConfigError("include works in files only");
    if (path.size() > 64) throw ConfigError("nested too deep");
    YamlValue* place = &root;
    std::string walked;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (path[i].empty()) throw ConfigError("a part of the key is empty");
      place = &step_into(*place, path[i], walked);
      walked += (walked.empty() ? "" : ".") + path[i];
    }
    value.key = place->key;  // the key's place is the command line, too
    *place = std::move(value);
  }

  YamlValue& step_into(YamlValue& value, const std::string& step, const std::string& walked) {
    if (value.kind == YamlValue::Kind::null) {
      value.kind = YamlValue::Kind::map;
      value.place = {source_};
    }
    if (value.kind == YamlValue::Kind::scalar)
      throw ConfigError(fmt::format("{} is not a map", walked));
    if (value.kind == YamlValue::Kind::list) {
      const auto index = number_of<std::size_t>(step);
      if (!index) throw ConfigError(fmt::format("{} is a list; give an index", walked));
      if (*index >= value.items.size()) {
        throw ConfigError(
            fmt::format("{} has {} items, counted from 0", walked, value.items.size()));
      }
      return value.items[*index];
    }
    const auto found = std::ranges::find(value.items, step, &YamlValue::key);
    if (found != value.items.end()) return *found;
    YamlValue& item = value.items.emplace_back();
    item.key = step;
    item.key_place = {source_};
    return item;
  }

  YamlMistakes& mistakes_;
  std::shared_ptr<const YamlLocation::Source> source_ = std::make_shared<YamlLocation::Source>(
      YamlLocation::Source{"command line", std::numeric_limits<int>::max()});
};

YamlValue resolve(YamlValue root, const std::vector<std::string>& overrides,
                  YamlMistakes& mistakes) {
  Overrides command_line(mistakes);
  for (const std::string& assignment : overrides) command_line.apply(root, assignment);
  expand_environment(root, mistakes);
  return root;
}

}  // namespace

YamlValue load_config_tree(const std::filesystem::path& path,
                           const std::vector<std::string>& overrides, YamlMistakes& mistakes) {
  FileLoader loader(mistakes);
  try {
    return resolve(loader.load(path), overrides, mistakes);
  } catch (const IoError& error) {
    throw ConfigError(error.what());
  }
}

YamlValue parse_config_tree(std::string_view text, std::string_view name,
                            const std::vector<std::string>& overrides, YamlMistakes& mistakes) {
  FileLoader loader(mistakes);
  return resolve(loader.parse(text, std::string(name)), overrides, mistakes);
}

}  // namespace tpudist
