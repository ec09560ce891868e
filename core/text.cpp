#include "core/text.hpp"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdint>

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

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table: the one before the last, the last, and the new one.
  std::vector<std::size_t> older(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], older[j - 2] + 1);
      }
    }
    std::swap(older, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::vector<std::string> near_names(std::string_view word,
                                    std::span<const std::string> candidates) {
  const std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  std::size_t best_distance = limit + 1;
  const std::string* best = nullptr;
  if (word.size() > 256) return {};
  // "gpu" is called "cuda" here, though "cpu" is nearer by spelling.
  if (word == "gpu" && std::ranges::find(candidates, "cuda") != candidates.end()) return {"cuda"};
  for (const std::string& candidate : candidates) {
    if (candidate.size() > word.size() + limit || candidate.empty()) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best_distance = distance;
      best = &candidate;
    }
  }
  if (best) return {*best};
  std::vector<std::string> longer;
  for (const std::string& candidate : candidates) {
    if (word.size() >= 3 && candidate.find(word) != std::string::npos) longer.push_back(candidate);
  }
  return longer;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string> near = near_names(word, candidates);
  return near.empty() ? std::string() : "; did you mean " + join(near, " or ") + "?";
}

std::string nearest_of(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string> near = near_names(word, candidates);
  return near.empty() ? std::string() : near.front();
}

bool glob_match(std::string_view pattern, std::string_view text) {
  return fnmatch(std::string(pattern).c_str(), std::string(text).c_str(), FNM_NOESCAPE) == 0;
}

std::string escape_glob(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[')
      pattern += {'[', c, ']'};
    else
      pattern += c;
  }
  return pattern;
}

bool glob_match_any(std::span<const std::string> patterns, std::string_view text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return glob_match(pattern, text); });
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string join(std::span<const std::string> pieces, std::string_view separator) {
  return fmt::format("{}", fmt::join(pieces, separator));
}

std::string first_of(std::span<const std::string> names, std::size_t most) {
  return join(names.first(std::min(most, names.size())), ", ") +
         (names.size() > most ? ", ..." : "");
}

std::string_view trim(std::string_view text) {
  static constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

bool is_utf8(std::string_view text) {
  static constexpr std::uint32_t kLeast[] = {0, 0x80, 0x800,
                                             0x10000};  // by number of further bytes
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    if (first < 0x80) continue;
    const int further = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : 1;
    if (first < 0xC2 || first > 0xF4) return false;
    std::uint32_t point = first & (0x3Fu >> further);
    for (int k = 0; k < further; ++k) {
      if (i >= text.size() || (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return false;
      point = point << 6 | (static_cast<unsigned char>(text[i++]) & 0x3F);
    }
    if (point < kLeast[further] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
      return false;
  }
  return true;
}

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
