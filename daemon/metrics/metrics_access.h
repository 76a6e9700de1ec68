// Decides what the one at the other end of a connection may read of the metrics.
//
// The kernel tells whose process it is, of connections inside this machine; of others only the
// address is known. Root, the user that ferryd runs as, and the listed ones see the series of all
// jobs; other users those of their own; strangers none.
#pragma once

#include <set>
#include <string>

#include "common/address_list.h"
#include "common/status.h"
#include "daemon/metrics/metrics_page.h"
#include "daemon/metrics/user_names.h"

namespace ferry::daemon {

class MetricsAccess {
 public:
  // `readers`: names and numbers of users, and IP addresses and blocks of them, divided by commas.
  // Nothing is looked up yet: a user database may come up later than ferryd. kConfiguration names a
  // part that is neither.
  static StatusOr<MetricsAccess> Parse(const std::string& readers);

  // The reader at the other end of a TCP connection, whose address is `from`. Any thread, one at a
  // time; blocks only as UserNames does.
  MetricsReader ReaderOf(int tcp_socket, const std::string& from, UserNames* users) const;

 private:
  bool IsListed(uid_t uid, UserNames* users) const;

  std::set<std::string> users_;  // names and numbers
  AddressList addresses_;
};

}  // namespace ferry::daemon
