#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// A place in a YAML text, or a source as a whole (line 0).
struct YamlLocation {
  struct Source {
    std::string name;  // as shown to the user, e.g. "experiments/nlp.yaml"
    int order = 0;     // mistakes are listed in this order
  };
  std::shared_ptr<const Source> source;
  int line = 0, column = 0;  // from 1

  std::string to_string() const;  // "experiments/nlp.yaml:3:5"
  bool operator<(const YamlLocation& other) const;
};

// Everything that is wrong with a configuration, so that all of it can be reported at once.
class YamlMistakes {
 public:
  void add(YamlLocation place, std::string message);
  bool empty() const { return list_.empty(); }
  // One line each, sorted by place, at most 50 of them; equal lines once.
  std::string to_string() const;

 private:
  struct Mistake {
    YamlLocation place;
    std::string message;
  };
  std::vector<Mistake> list_;
};

struct YamlEntry;

// A YAML value with the place of everything in it. Aliases are expanded.
struct YamlValue {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false;             // the scalar was written with quotes or as a block: always text
  bool unusable = false;           // a mistake about it is recorded already
  std::string text;                // scalar
  std::vector<YamlValue> items;    // list
  std::vector<YamlEntry> entries;  // map, keys differ
  YamlLocation place;

  bool is_map() const { return kind == Kind::map; }
  const YamlEntry* find(std::string_view key) const;
  YamlEntry* find(std::string_view key);
};

struct YamlEntry {
  std::string key;
  YamlLocation place;
  YamlValue value;
};

// Parses one document; an empty text is a null. Keys must be scalars. A key given twice is a
// mistake (the first one stays). Throws ConfigError `file:line:column: message` for what is not
// YAML, for tags, merge keys, anchors that loop, several documents, nesting over 64, and values
// that are larger than 100,000 nodes or 16 MiB after aliases are expanded.
YamlValue parse_yaml(std::string_view text, std::shared_ptr<const YamlLocation::Source> source,
                     YamlMistakes& mistakes);

// `over` laid over `base`: maps key by key, anything else as a whole. Keys keep the order of
// `base`.
YamlValue merge_yaml(YamlValue base, YamlValue over);

}  // namespace tpudist
