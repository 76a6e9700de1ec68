// Tells which host this is, and by which of its addresses the others reach it.
//
// OwnAddresses, DefaultInterface, IsThisHost and ResolvesTo ask the system and may block for name
// service; ChooseAddress is pure. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

// An address of a network interface that is up.
struct OwnAddress {
  std::string interface;
  std::string text;  // "10.0.0.7", "fd00::7"
  bool loopback = false;
};

StatusOr<std::vector<OwnAddress>> OwnAddresses();
// The interface of the default route; empty if there is none.
std::string DefaultInterface();

// The addresses, as text, of a name or an address; none if it is unknown.
std::vector<std::string> Resolve(const std::string& name);

// Whether `name` (as the user wrote it) is this host.
bool IsThisHost(const std::string& name);

// The facts from which ChooseAddress decides.
struct AddressQuestion {
  std::string network;                // an interface, "ADDRESS/BITS", an address, or nothing
  std::vector<std::string> named;     // what the host's name, as the user wrote it, stands for
  std::string default_interface;      // empty: none
  std::vector<OwnAddress> addresses;  // of this host
};
// In this order: the address in `network`; one that the name stands for; the one of the default
// interface; the only one that is not of a loopback interface. Errors: kNotFound (no such network
// here, or no address), kInvalidArgument (no network, or several addresses to choose from).
StatusOr<std::string> ChooseAddress(const AddressQuestion& question);

// ChooseAddress, with the facts of this host.
StatusOr<std::string> AddressOfThisHost(const std::string& name, const std::string& network);

}  // namespace ferry::tools
