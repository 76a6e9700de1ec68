// Messages that carry descriptors over a Unix socket (SCM_RIGHTS, unix(7)).
//
// Any thread; blocks as the socket and the flags say.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

#include "common/unique_fd.h"

namespace ferry {

// The most that one message may carry.
inline constexpr size_t kMaxPassedDescriptors = 4;

// sendmsg without SIGPIPE: -1 and errno, EINVAL for too many descriptors.
ssize_t SendWithDescriptors(int socket, std::span<const std::byte> bytes,
                            std::span<const int> descriptors, int flags);

// recvmsg: -1 and errno. Adds the descriptors that came, closed on exec, to `descriptors`, all of
// them: what the kernel had no room for it would close, here and now, for as long as that takes.
// `message_flags`, if any: MSG_TRUNC (bytes were lost), MSG_CTRUNC (there are more descriptors than
// kMaxPassedDescriptors, or this process has none left).
ssize_t ReceiveWithDescriptors(int socket, std::span<std::byte> bytes,
                               std::vector<UniqueFd>* descriptors, int flags,
                               int* message_flags = nullptr);

}  // namespace ferry
