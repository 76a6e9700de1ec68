// `ferryctl certs`: writes a test authority and certificates of nodes into a directory.
//
// Blocks for the files only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

struct CertsPlan {
  std::string directory;           // made if it is not there
  std::vector<std::string> nodes;  // NAME[,ADDRESS...]; none: this host, reached over loopback
  uint64_t days = 365;             // how long the nodes' certificates are valid
};

struct NodeFiles {
  std::string name;
  std::vector<std::string> valid_for;  // its name and addresses
  std::string certificate;             // absolute paths
  std::string key;
};

struct CertsResult {
  bool new_authority = false;  // false: the authority that was there was used
  std::string authority;       // absolute path of its certificate; its key is ca.key beside it
  std::vector<NodeFiles> nodes;
};

// Uses the authority (ca.pem, ca.key) if it is there and makes it if not, so that nodes can be
// added and renewed. All files have mode 0600. Errors: kAlreadyExists (a file would be overwritten;
// then none is written), kInvalidArgument (a name, or one that is given twice), those of the
// system.
StatusOr<CertsResult> MakeCerts(const CertsPlan& plan);

// Tells the user what to do with the files, with the lines for ferryd.toml.
std::string CertsText(const CertsResult& result);

}  // namespace ferry::tools
