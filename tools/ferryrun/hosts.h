// The hosts that a user names for a job, on the command line or in a file, and the one among them
// that ferryrun runs on.
//
// ParseHostList, ParseHostFile and ChooseAddress are pure; ReadHostFile blocks for the file; the
// others ask the system and may block for name service. Any thread. Errors: kInvalidArgument,
// saying what is wrong with which entry; those of the file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

// A host, and how many ranks it gets before the next host's turn.
struct Host {
  std::string name;
  uint64_t slots = 1;

  bool operator==(const Host&) const = default;
};

// Reads "a,b:4,[fd00::1]:2": names or addresses, each with its slots. A host that is named again
// gets as many more.
StatusOr<std::vector<Host>> ParseHostList(std::string_view text);

// Reads a line for each host, "NAME", "NAME:4" or "NAME slots=4"; from # on a line is a comment.
// `where` opens the messages.
StatusOr<std::vector<Host>> ParseHostFile(std::string_view text, const std::string& where);
StatusOr<std::vector<Host>> ReadHostFile(const std::string& path);

// Adds `more` to `hosts`; the slots of one that is in both are added up.
void AddHosts(const std::vector<Host>& more, std::vector<Host>* hosts);

// Returns true if `name` may name a host: it becomes a word of a remote shell's command line, and
// is never an option of the launcher.
bool IsHostName(std::string_view name);

// Returns true if two names are one host's: a name without a domain fits any domain.
bool AreSameHost(const std::string& a, const std::string& b);

// Returns the words of a line, between spaces.
std::vector<std::string_view> WordsOf(std::string_view line);

// ---- Which host this is, and by which of its addresses the others reach it ----

// An address of a network interface that is up.
struct OwnAddress {
  std::string interface;
  std::string text;  // "10.0.0.7", "fd00::7"
  bool loopback = false;
};

StatusOr<std::vector<OwnAddress>> OwnAddresses();
// Returns the interface of the default route; empty if there is none.
std::string DefaultInterface();

// Returns the addresses, as text, of a name or an address; none if it is unknown.
std::vector<std::string> Resolve(const std::string& name);

// Returns true if `name` (as the user wrote it) is this host.
bool IsThisHost(const std::string& name);

// The facts from which ChooseAddress decides.
struct AddressQuestion {
  std::string network;                // an interface, "ADDRESS/BITS", an address, or nothing
  std::vector<std::string> named;     // what the host's name, as the user wrote it, stands for
  std::string default_interface;      // empty: none
  std::vector<OwnAddress> addresses;  // of this host
};
// Chooses, in this order: the address in `network`; one that the name stands for; the one of the
// default interface; the only one that is not of a loopback interface. Errors: kNotFound (no such
// network here, or no address), kInvalidArgument (no network, or several addresses to choose from).
StatusOr<std::string> ChooseAddress(const AddressQuestion& question);

// Returns ChooseAddress of the facts of this host.
StatusOr<std::string> AddressOfThisHost(const std::string& name, const std::string& network);

}  // namespace ferry::tools
