#include "core/config/yaml_tree.hpp"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/config/yaml_scalar.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxNodes = 100'000;
constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxReported = 50;

struct Size {
  std::size_t nodes = 0, bytes = 0;
  void add(const YamlValue& value) {
    ++nodes;
    bytes += value.text.size();
    for (const YamlValue& item : value.items) {
      bytes += item.key.size();
      add(item);
    }
  }
};

// Builds a tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const YamlLocation::Source> source, YamlMistakes& mistakes)
      : source_(std::move(source)), mistakes_(mistakes) {}

  YamlValue take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) fail(mark, "a second document; one file holds one configuration");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(mark, YamlValue::Kind::null), anchor, mark);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias inside of its own anchor");
    count(found->second, mark);
    insert(found->second, mark);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    YamlValue value = make(mark, YamlValue::Kind::scalar);
    value.quoted = tag == "!";  // plain scalars have the tag "?"
    if (!value.quoted) check_tag(mark, tag);
    // The library turns each of the escapes \x80 to \xff, \_ and \N into one byte.
    if (!is_utf8(text))
      fail(mark, "an escape that gives no UTF-8 text; write the character itself");
    value.text = text;
    add(std::move(value), anchor, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlValue::Kind::list);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlValue::Kind::map);
  }
  void OnMapEnd() override { close(); }

 private:
  // A list or map that has not ended.
  struct Frame {
    YamlValue value;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    bool has_key = false;
    std::string key = {};  // of the next item, and its place
    YamlLocation key_place = {};
    std::unordered_map<std::string, int> lines = {};  // of the keys so far
  };

  YamlLocation place(const YAML::Mark& mark) const {
    return {source_, mark.line + 1, mark.column + 1};
  }

  [[noreturn]] void fail(const YAML::Mark& mark, std::string_view message) const {
    throw ConfigError(fmt::format("{}: {}", place(mark).to_string(), message));
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") fail(mark, "tags are not supported: " + tag);
  }

  YamlValue make(const YAML::Mark& mark, YamlValue::Kind kind) const {
    YamlValue value;
    value.kind = kind;
    value.place = place(mark);
    return value;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlValue::Kind kind) {
    check_tag(mark, tag);
    if (frames_.size() == kMaxDepth) fail(mark, fmt::format("nested deeper than {}", kMaxDepth));
    frames_.push_back({make(mark, kind), anchor, mark});
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    add(std::move(frame.value), frame.anchor, frame.mark);
  }

  void count(const YamlValue& value, const YAML::Mark& mark) {
    size_.add(value);
    if (size_.nodes > kMaxNodes) fail(mark, fmt::format("more than {} values", kMaxNodes));
    if (size_.bytes > kMaxBytes) fail(mark, fmt::format("more than {} bytes of text", kMaxBytes));
  }

  // Adds a complete value. The items of a list or map were counted when they were added.
  void add(YamlValue value, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (value.kind == YamlValue::Kind::null || value.kind == YamlValue::Kind::scalar) {
      count(value, mark);
    } else {
      ++size_.nodes;
    }
    if (anchor != YAML::NullAnchor) {
      count(value, mark);  // the anchor keeps a second copy
      anchors_[anchor] = value;
    }
    insert(std::move(value), mark);
  }

  void insert(YamlValue value, const YAML::Mark& mark) {
    if (frames_.empty()) {
      root_ = std::move(value);
    } else if (Frame& frame = frames_.back(); frame.value.kind == YamlValue::Kind::list) {
      frame.value.items.push_back(std::move(value));
    } else if (!frame.has_key) {
      start_entry(frame, std::move(value), mark);
    } else {
      end_entry(frame, std::move(value));
    }
  }

  void start_entry(Frame& frame, YamlValue key, const YAML::Mark& mark) {
    if (key.kind != YamlValue::Kind::scalar) fail(mark, "a key must be a word");
    // YAML requires a question mark before longer keys.
    if (format_yaml_text(key.text).size() > 1000) fail(mark, "a key of more than 1,000 characters");
    if (key.text == "<<" && !key.quoted)
      fail(mark, "merge keys (<<) are not supported; use include");
    frame.has_key = true;
    frame.key = std::move(key.text);
    frame.key_place = place(mark);
  }

  void end_entry(Frame& frame, YamlValue value) {
    frame.has_key = false;
    // An empty value has no place of its own.
    if (value.kind == YamlValue::Kind::null) value.place = frame.key_place;
    const auto [earlier, is_new] = frame.lines.emplace(frame.key, frame.key_place.line);
    if (is_new) {
      value.key = std::move(frame.key);
      value.key_place = frame.key_place;
      frame.value.items.push_back(std::move(value));
    } else {
      mistakes_.add(frame.key_place, fmt::format("key {} is given twice, first in line {}",
                                                 quote_briefly(frame.key), earlier->second));
    }
  }

  std::shared_ptr<const YamlLocation::Source> source_;
  YamlMistakes& mistakes_;
  int documents_ = 0;
  Size size_;
  YamlValue root_;
  std::vector<Frame> frames_;
  std::unordered_map<YAML::anchor_t, YamlValue> anchors_;
};

// The YAML library uses some control characters internally, and silently replaces invalid UTF-8.
void check_characters(std::string_view text,
                      const std::shared_ptr<const YamlLocation::Source>& source) {
  YamlLocation place{source, 1, 1};
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r') ||
        c == 0x7F) {
      throw ConfigError(fmt::format("{}: the control character 0x{:02x}; is this a YAML file?",
                                    place.to_string(), static_cast<unsigned char>(c)));
    }
    place.column = c == '\n' ? 1 : place.column + 1;
    place.line += c == '\n';
  }
  if (!is_utf8(text)) throw ConfigError(source->name + ": not UTF-8 text");
}

}  // namespace

std::string YamlLocation::to_string() const {
  return line == 0 ? source->name : fmt::format("{}:{}:{}", source->name, line, column);
}

bool YamlLocation::operator<(const YamlLocation& other) const {
  return std::tuple(source->order, line, column) <
         std::tuple(other.source->order, other.line, other.column);
}

void YamlMistakes::add(YamlLocation place, std::string message) {
  list_.push_back({std::move(place), std::move(message)});
}

std::string YamlMistakes::to_string() const {
  std::vector<const Mistake*> sorted;
  for (const Mistake& mistake : list_) sorted.push_back(&mistake);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Mistake* a, const Mistake* b) { return a->place < b->place; });
  std::vector<std::string> lines;
  std::unordered_set<std::string> seen;
  std::size_t further = 0;
  for (const Mistake* mistake : sorted) {
    std::string line = fmt::format("{}: {}", mistake->place.to_string(), mistake->message);
    if (!seen.insert(line).second) continue;
    if (lines.size() < kMaxReported) {
      lines.push_back(std::move(line));
    } else {
      ++further;
    }
  }
  if (further > 0) lines.push_back(fmt::format("... and {} more", further));
  return join(lines, "\n");
}

const YamlValue* YamlValue::find(std::string_view wanted) const {
  const auto found = std::ranges::find(items, wanted, &YamlValue::key);
  return is_map() && found != items.end() ? &*found : nullptr;
}

YamlValue parse_yaml(std::string_view text, std::shared_ptr<const YamlLocation::Source> source,
                     YamlMistakes& mistakes) {
  check_characters(text, source);
  TreeBuilder builder(source, mistakes);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const YamlLocation place =
        error.mark.is_null() ? YamlLocation{source}
                             : YamlLocation{source, error.mark.line + 1, error.mark.column + 1};
    const std::vector<std::string> lines = split(text, '\n');
    for (int line = place.line; line > std::max(0, place.line - 2); --line) {
      const std::string& one = lines.at(static_cast<std::size_t>(line) - 1);
      if (const std::size_t tab = one.find('\t'); tab < one.find_first_not_of(" \t\r"))
        throw ConfigError(fmt::format("{}:{}:{}: a tab; indent YAML by blanks alone ({})",
                                      source->name, line, tab + 1, error.msg));
    }
    throw ConfigError(fmt::format("{}: {}", place.to_string(), error.msg));
  }
  return builder.take();
}

YamlValue merge_yaml(YamlValue base, YamlValue over) {
  if (!base.is_map() || !over.is_map()) return over;
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < base.items.size(); ++i) index.emplace(base.items[i].key, i);
  for (YamlValue& item : over.items) {
    const auto found = index.find(item.key);
    if (found == index.end()) {
      base.items.push_back(std::move(item));
    } else {
      YamlValue& old = base.items[found->second];
      old = merge_yaml(std::move(old), std::move(item));
    }
  }
  base.place = over.place;
  base.key_place = over.key_place;
  return base;
}

}  // namespace tpudist
