// The values after `=`: which are possible is a matter of the argument's type.
#pragma once

#include "cursor.h"

#include <tenon/schema/schema.h>

namespace tenon::schema {

// Reads the default of an argument of type `type`. What the type cannot hold is an error at the value's column.
Default parse_default(Cursor& cursor, const Type& type);

}  // namespace tenon::schema
