#include "core/escape.hpp"

#include "core/text.hpp"

namespace tpudist {
namespace {

bool is_shown(std::string_view character) {
  const auto within = [&](std::string_view first, std::string_view last) {
    return character.size() == first.size() && first <= character && character <= last;
  };
  return !(within({"\0", 1}, "\x1f") || within("\x7f", "\x7f") ||  // C0 and DEL
           within("\xc2\x80", "\xc2\x9f") ||                       // C1
           within("\xd8\x9c", "\xd8\x9c") ||                       // direction: U+061C
           within("\xe2\x80\x8e", "\xe2\x80\x8f") ||               // U+200E, U+200F
           within("\xe2\x80\xa8", "\xe2\x80\xae") ||  // lines, direction: U+2028 to 202E
           within("\xe2\x81\xa6", "\xe2\x81\xa9") ||  // U+2066 to U+2069
           within("\xef\xbf\xbe", "\xef\xbf\xbf"));   // none: U+FFFE, U+FFFF
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept, std::string_view mark) {
  std::string plain;
  for (std::string_view character; !text.empty(); text.remove_prefix(character.size())) {
    const auto lead = static_cast<unsigned char>(text.front());
    character = text.substr(0, lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4);
    const bool whole = is_utf8(character);
    if (!whole) character = text.substr(0, 1);
    const bool shown = whole && (is_shown(character) || kept.find(character) != kept.npos);
    plain += shown ? character : mark;
  }
  return plain;
}

std::string csv_field(std::string_view text) {
  const bool sum = text.starts_with('+') || text.starts_with('-');  // or a number with a sign
  const bool formula = text.find_first_of("=@\t\r") == 0 ||
                       (sum && text.find_first_of("(|!") != std::string_view::npos);
  std::string field(formula ? "'" : "");
  field += text;
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace tpudist
