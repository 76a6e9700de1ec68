// A user's own folders in a place where any user may make folders of any name, such as /tmp.
//
// No other user can make a folder that belongs to the user. So the owner finds a folder with a name
// that cannot be guessed (mkdtemp) again, and others gain nothing by names that look alike.
//
// Any thread; blocks on the file system only.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ferry {

// Returns true if `path` is a folder, not a link to one, that belongs to the user and into which no
// other user may write.
bool IsFolderOf(const std::string& path, uid_t uid);

// Returns the paths of such folders in `base` whose names begin with `prefix`, sorted.
std::vector<std::string> FoldersOf(const std::string& base, const std::string& prefix, uid_t uid);

// Returns true if only the user and root can replace files that the user makes in `base`: it is the
// user's or root's, and where others may write it is sticky, as /tmp is.
bool IsSafeBase(const std::string& base, uid_t uid);

}  // namespace ferry
