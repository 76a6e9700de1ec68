// The providers that the transport's library has on this machine, for diagnosis.
//
// Any thread; the first call opens the library, and blocks while it looks for devices.
#pragma once

#include <string>
#include <vector>

namespace ferry::transport {

struct ListedProvider {
  std::string name;
  bool usable = false;  // has what a Transport needs: reliable datagrams, messages, RMA
};

// All of libfabric's providers; empty if there is no libfabric.
std::vector<ListedProvider> ListProviders();

// "1.17", or "(not installed)".
std::string LibraryVersion();

}  // namespace ferry::transport
