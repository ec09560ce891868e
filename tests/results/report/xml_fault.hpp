#pragma once

#include <cctype>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tpudist::test {

// A checker of well-formed XML, as far as pages and drawings use XML: nested elements, attributes
// in double quotes and once each, known references, no bare '<' or '&', one root.
class XmlFault {
 public:
  // Describes the first fault, with the text after it; empty if there is none.
  static std::string find(std::string_view text) { return XmlFault(text).run(); }

 private:
  explicit XmlFault(std::string_view text) : rest_(text) {}

  std::string fault(const std::string& what) const {
    return what + " before \"" + std::string(rest_.substr(0, 60)) + "\"";
  }

  std::string run() {
    if (rest_.starts_with("<!DOCTYPE html>")) rest_.remove_prefix(15);
    while (!rest_.empty()) {
      const std::string found = rest_.front() == '<' ? element() : character();
      if (!found.empty()) return found;
    }
    if (!open_.empty()) return "open at the end: " + open_.back();
    return roots_ == 1 ? "" : "there is not one root";
  }

  std::string character() {
    if (open_.empty() && !std::isspace(static_cast<unsigned char>(rest_.front())))
      return fault("text outside of the root");
    if (rest_.front() == '&') return reference();
    rest_.remove_prefix(1);
    return {};
  }

  std::string reference() {
    const std::string_view name = rest_.substr(0, rest_.find(';') + 1);
    for (const char* known : {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"}) {
      if (name != known) continue;
      rest_.remove_prefix(name.size());
      return {};
    }
    return fault("unknown reference");
  }

  std::string_view name() {
    std::size_t end = 0;
    while (end < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[end])) ||
                                  rest_[end] == '-' || rest_[end] == ':'))
      ++end;
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return found;
  }

  std::string element() {
    rest_.remove_prefix(1);
    if (rest_.starts_with('/')) {
      rest_.remove_prefix(1);
      const std::string_view closed = name();
      if (open_.empty() || open_.back() != closed) return fault("closes what is not open");
      open_.pop_back();
      return end_of_tag();
    }
    const std::string opened(name());
    if (opened.empty()) return fault("no name of an element");
    if (open_.empty()) ++roots_;
    std::set<std::string> seen;
    while (rest_.starts_with(' ')) {
      rest_.remove_prefix(1);
      if (!seen.insert(std::string(name())).second) return fault("an attribute twice");
      if (!rest_.starts_with("=\"")) return fault("an attribute without quotes");
      rest_.remove_prefix(2);
      while (!rest_.empty() && rest_.front() != '"') {
        if (rest_.front() == '<') return fault("'<' in an attribute");
        const std::string found = rest_.front() == '&' ? reference() : (rest_.remove_prefix(1), "");
        if (!found.empty()) return found;
      }
      if (rest_.empty()) return "an attribute without an end";
      rest_.remove_prefix(1);
    }
    if (rest_.starts_with("/>")) {
      rest_.remove_prefix(2);
      return {};
    }
    open_.push_back(opened);
    return end_of_tag();
  }

  std::string end_of_tag() {
    if (!rest_.starts_with('>')) return fault("a tag that does not end");
    rest_.remove_prefix(1);
    return {};
  }

  std::string_view rest_;
  std::vector<std::string> open_;
  int roots_ = 0;
};

}  // namespace tpudist::test
