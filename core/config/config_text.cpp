#include "core/config/config_text.hpp"

#include "core/config/yaml_scalar.hpp"

namespace tpudist {

std::string describe(const YamlValue& value) {
  switch (value.kind) {
    case YamlValue::Kind::null:
      return "has no value";
    case YamlValue::Kind::list:
      return "is a list";
    case YamlValue::Kind::map:
      return "is a map";
    case YamlValue::Kind::scalar:
      break;
  }
  return fmt::format("is {}{}", value.quoted ? "the quoted text " : "", quote_briefly(value.text));
}

std::string to_yaml(std::int64_t value) {
  return fmt::format("{}", value);
}
std::string to_yaml(double value) {
  return format_number(value);
}
std::string to_yaml(bool value) {
  return value ? "true" : "false";
}
std::string to_yaml(const std::string& value) {
  return format_yaml_text(value);
}

std::string to_yaml(const AutoOrInteger& value) {
  return value.value ? to_yaml(*value.value) : "auto";
}

std::string to_yaml(const YamlValue& value) {
  std::vector<std::string> pieces;
  switch (value.kind) {
    case YamlValue::Kind::null:
      return "null";
    case YamlValue::Kind::list:
      for (const YamlValue& item : value.items) pieces.push_back(to_yaml(item));
      return fmt::format("[{}]", join(pieces, ", "));
    case YamlValue::Kind::map:
      for (const YamlEntry& entry : value.entries) {
        pieces.push_back(fmt::format("{}: {}", format_yaml_text(entry.key), to_yaml(entry.value)));
      }
      return fmt::format("{{{}}}", join(pieces, ", "));
    case YamlValue::Kind::scalar:
      break;
  }
  // An unquoted value may be a number or a boolean and stays one; .nan is refused as text.
  const bool plain = !value.quoted && (!parse_number(value.text).error || value.text == "true" ||
                                       value.text == "false" || value.text == ".nan");
  return plain ? value.text : format_yaml_text(value.text);
}

}  // namespace tpudist
