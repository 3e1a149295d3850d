// HeaderList: the header fields of a request or a response, in order, in one piece of memory.
//
//   HeaderList headers;
//   headers.add("content-type", "text/plain");
//   if (auto type = headers.find("content-type")) use(*type);
//   for (std::size_t i = 0; i < headers.size(); ++i) use(headers[i].name, headers[i].value);
//
// Names are kept as they are given: HTTP/2 has them in lower case, and what comes in by HTTP/1.1 is
// put so.
//
// Threads: a plain value; one owner.
// Bounds:  4 GiB of text; users bound bytes().
// Cost:    find() looks at each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ordo::http2 {

struct Header {
  std::string_view name;
  std::string_view value;
};

class HeaderList {
 public:
  HeaderList() = default;
  HeaderList(std::initializer_list<Header> headers) {
    for (const Header& header : headers)
      add(header.name, header.value);
  }

  // Room for so many, in so many characters.
  void reserve(std::size_t count, std::size_t characters) {
    places_.reserve(count);
    text_.reserve(characters);
  }

  void add(std::string_view name, std::string_view value) {
    places_.push_back(
        {.name = static_cast<std::uint32_t>(text_.size()),
         .value = static_cast<std::uint32_t>(text_.size() + name.size()),
         .end = static_cast<std::uint32_t>(text_.size() + name.size() + value.size())});
    text_.append(name).append(value);
  }

  // The first of that name.
  std::optional<std::string_view> find(std::string_view name) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const Header header = (*this)[i];
      if (header.name == name) return header.value;
    }
    return std::nullopt;
  }

  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  Header operator[](std::size_t index) const {
    const Place& place = places_[index];
    const std::string_view text = text_;
    return {text.substr(place.name, place.value - place.name),
            text.substr(place.value, place.end - place.value)};
  }

  // As HTTP/2 counts them: 32 for each field, and its characters.
  std::size_t bytes() const { return text_.size() + kFieldBytes * places_.size(); }

  static constexpr std::size_t kFieldBytes = 32;

 private:
  struct Place {
    std::uint32_t name;
    std::uint32_t value;
    std::uint32_t end;
  };

  std::string text_;
  std::vector<Place> places_;
};

}  // namespace ordo::http2
