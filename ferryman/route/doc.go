// Package route finds the longest configured prefix of a request's path and refuses paths that an
// upstream could read in another way. It does not look at methods, hosts or queries.
//
//	table, err := route.Build([]route.Entry[string]{{"/", "web"}, {"/api", "backend"}})
//	prefix, value, ok, err := table.Resolve([]byte("/api/users")) // "/api", "backend", true, nil
//
// table.go has the table and draws it, path.go the normal form of a path and what is refused.
package route
