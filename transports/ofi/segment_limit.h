// Keeps the TCP connections of the sockets provider from stalling over loopback.
//
// That provider looks for the 24 bytes of a message's header, and reads nothing before all of them
// are there. Over loopback a segment has up to 64 KiB, and the kernel counts the whole of it
// against the receive buffer (128 KiB by default) until its last byte is read. So when less than a
// header is left of a segment, the buffer may look so full that the kernel, which opens its window
// only for a whole segment, keeps it shut. Each side then waits for the other for ever. With
// segments no longer than those of networks there is always room for one.
//
// Calling thread: any. Blocks only to read /proc.
#pragma once

#include <cstddef>
#include <span>

namespace ferry::transport {

inline constexpr int kMostSegmentBytes = 8192;  // about a jumbo frame

// Limits the segments of all connections that this process will accept at the TCP address `name`
// (a sockaddr), in both directions. False: it listens nowhere there, or /proc cannot be read.
bool LimitSegments(std::span<const std::byte> name);

}  // namespace ferry::transport
