#include "common/address_list.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "common/number_text.h"

namespace ferry {
namespace {

constexpr unsigned kMappedBits = 96;  // before an IPv4 address that is mapped into IPv6
constexpr unsigned kAllBits = 128;

std::string SmallLetters(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool IsName(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isalpha(c); }) &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
         });
}

// The number of bits that a mask says, counted in IPv6; 0 if it is none.
bool ReadBits(const std::string& text, unsigned before, unsigned* bits) {
  const std::optional<unsigned> number = NumberIn<unsigned>(text);
  *bits = before + number.value_or(0);
  return number && *number <= kAllBits - before;
}

}  // namespace

bool AddressList::ReadAddress(const std::string& text, Address* address) {
  in6_addr six{};
  in_addr four{};
  if (inet_pton(AF_INET6, text.c_str(), &six) == 1) {
    std::memcpy(address->data(), &six, sizeof(six));
    return true;
  }
  if (inet_pton(AF_INET, text.c_str(), &four) != 1) {
    return false;
  }
  *address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  std::memcpy(address->data() + kMappedBits / 8, &four, sizeof(four));
  return true;
}

bool AddressList::ReadBlock(const std::string& text, Block* block) {
  const size_t slash = text.find('/');
  const std::string first = text.substr(0, slash);
  block->bits = kAllBits;
  const unsigned before = first.find(':') == std::string::npos ? kMappedBits : 0;
  return ReadAddress(first, &block->first) &&
         (slash == std::string::npos || ReadBits(text.substr(slash + 1), before, &block->bits));
}

StatusOr<AddressList> AddressList::Parse(const std::string& text) {
  AddressList list;
  for (size_t at = 0; at < text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, comma - at);
    at = comma + 1;
    Block block{};
    if (ReadBlock(part, &block)) {
      list.blocks_.push_back(block);
    } else if (IsName(part)) {
      list.names_.push_back(SmallLetters(part));
    } else {
      return Status(ErrorCode::kConfiguration,
                    "\"" + part +
                        "\" must be an IP address, a block such as 10.1.0.0/16, a host name or a "
                        "domain such as .cluster.example");
    }
  }
  return list;
}

bool AddressList::Contains(const std::string& host) const {
  Address address{};
  if (!ReadAddress(host, &address)) {
    const std::string name = SmallLetters(host);
    return std::any_of(names_.begin(), names_.end(), [&](const std::string& entry) {
      return entry.front() == '.' ? name.size() > entry.size() && name.ends_with(entry)
                                  : name == entry;
    });
  }
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    const unsigned whole = block.bits / 8;
    const unsigned rest = block.bits % 8;
    const auto mask = static_cast<uint8_t>(0xff00U >> rest);
    return std::equal(address.begin(), address.begin() + whole, block.first.begin()) &&
           (rest == 0 || ((address[whole] ^ block.first[whole]) & mask) == 0);
  });
}

}  // namespace ferry
