// A list of hosts, as an administrator writes it: IP addresses, blocks of them such as 10.1.0.0/16
// and fd00::/8, host names, and domains such as .cluster.example, which stand for all names below.
//
// Names are compared as text, without regard to case, and addresses as numbers: nothing asks a name
// service. Any thread; nothing blocks.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"

namespace ferry {

class AddressList {
 public:
  // Parts are divided by commas; an empty text is an empty list. kConfiguration names the part that
  // is neither an address, nor a block, nor a name.
  static StatusOr<AddressList> Parse(const std::string& text);

  bool empty() const { return blocks_.empty() && names_.empty(); }
  // Returns true if `host`, an IP address or a name, is in the list.
  bool Contains(const std::string& host) const;

 private:
  using Address = std::array<uint8_t, 16>;  // an IPv4 address as it is mapped into IPv6
  struct Block {
    Address first;
    unsigned bits;
  };
  static bool ReadAddress(const std::string& text, Address* address);
  static bool ReadBlock(const std::string& text, Block* block);

  std::vector<Block> blocks_;
  std::vector<std::string> names_;  // in small letters
};

}  // namespace ferry
