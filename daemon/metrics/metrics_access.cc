#include "daemon/metrics/metrics_access.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "daemon/sockets/connection_acceptor.h"

namespace ferry::daemon {
namespace {

// Returns true if a part is meant as an address: names of users have no such characters, but for a
// dot, and then they do not end with a digit, as only addresses of IPv4 do.
bool IsAddress(const std::string& part) {
  return part.find(':') != part.npos || part.find('/') != part.npos ||
         (part.find('.') != part.npos && part.find_first_not_of("0123456789.") == part.npos);
}

}  // namespace

StatusOr<MetricsAccess> MetricsAccess::Parse(const std::string& readers) {
  MetricsAccess access;
  std::string addresses;
  std::istringstream parts(readers);
  for (std::string part; std::getline(parts, part, ',');) {
    part.erase(0, part.find_first_not_of(' '));
    part.erase(part.find_last_not_of(' ') + 1);
    if (part.empty() || part.find_first_of(" \t") != part.npos) {
      return Status(ErrorCode::kConfiguration,
                    "metrics_readers: \"" + part + "\" is neither a user nor an address");
    }
    if (IsAddress(part)) {
      addresses += (addresses.empty() ? "" : ",") + part;
    } else {
      access.users_.insert(part);
    }
  }
  StatusOr<AddressList> list = AddressList::Parse(addresses);
  if (!list.ok()) {
    return Status(ErrorCode::kConfiguration, "metrics_readers: " + list.status().message());
  }
  access.addresses_ = std::move(*list);
  return access;
}

bool MetricsAccess::IsListed(uid_t uid, UserNames* users) const {
  return !users_.empty() &&
         (users_.contains(std::to_string(uid)) || users_.contains(users->Find(uid)));
}

MetricsReader MetricsAccess::ReaderOf(int tcp_socket, const std::string& from,
                                      UserNames* users) const {
  MetricsReader reader;
  reader.uid = LocalUserOf(tcp_socket);
  if (reader.uid.has_value()) {
    reader.sees_all_jobs =
        *reader.uid == 0 || *reader.uid == geteuid() || IsListed(*reader.uid, users);
  } else {
    reader.sees_all_jobs = addresses_.Contains(from);
  }
  return reader;
}

}  // namespace ferry::daemon
