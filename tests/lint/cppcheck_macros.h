/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Libraries' macros as cppcheck, which reads no system headers, is to see them. */
#define json_array_foreach(array, index, value)                                                                        \
	for (index = 0; index < json_array_size(array) && (value = json_array_get(array, index)); index++)
#define json_object_foreach(object, key, value)                                                                        \
	for (key = json_first(object); key && (value = json_object_get(object, key)); key = json_next(object, key))
