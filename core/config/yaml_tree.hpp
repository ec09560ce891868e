#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist {

// A position in a YAML text, or the whole source (line 0).
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

// Collects all mistakes in a configuration, to report them at once.
class YamlMistakes {
 public:
  void add(YamlLocation place, std::string message);
  bool empty() const { return list_.empty(); }
  // One line each, sorted by position, at most 50; duplicates are removed.
  std::string to_string() const;

 private:
  struct Mistake {
    YamlLocation place;
    std::string message;
  };
  std::vector<Mistake> list_;
};

// A YAML value with the positions of all its parts. Aliases are expanded.
struct YamlValue {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  bool quoted = false;           // written with quotes or as a block: always text
  bool unusable = false;         // a mistake about it has been recorded already
  std::string text;              // scalar
  std::vector<YamlValue> items;  // of a list, or of a map, whose keys differ
  YamlLocation place;
  std::string key;  // of an item of a map
  YamlLocation key_place;

  bool is_map() const { return kind == Kind::map; }
  const YamlValue* find(std::string_view wanted) const;
};

// Parses one document; an empty text is a null. Keys must be scalars. A key given twice is a
// mistake, and the first one is kept. Throws ConfigError `file:line:column: message` for text that
// is not YAML, tags, merge keys, anchors that loop, several documents, and nesting deeper than 64.
// Also throws when the value, with aliases expanded, has more than 100,000 nodes or 16 MiB.
YamlValue parse_yaml(std::string_view text, std::shared_ptr<const YamlLocation::Source> source,
                     YamlMistakes& mistakes);

// `over` merged into `base`: maps key by key, any other value as a whole. Keys keep the order of
// `base`.
YamlValue merge_yaml(YamlValue base, YamlValue over);

}  // namespace tpudist
