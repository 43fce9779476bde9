package upstream

// MaxIdle is the bound on the idle connections of one executor.
const MaxIdle = maxIdle
