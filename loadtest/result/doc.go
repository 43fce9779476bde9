// Package result counts what happened to the requests of a load test and turns it into a report, a
// verdict and pictures. It sends nothing and reads no clock.
//
//	c := result.NewCollector(layout, loops)
//	c.Recorder(0).Record(sample)  // by the loop, no lock, no allocation
//	c.Recorder(0).Flush()         // by the loop, now and then
//	live := c.Collect()           // by one other goroutine, while loops run
//	report := c.Report()          // after the loops have ended
//	report.Judge(budgets, result.Limits{})
//
// Three times are kept for each request: response is done - intended and is what a caller waits;
// service is done - sent and hides the time in the queue; send lag is how late the generator itself
// was. Every request that was due is in the response times, with or without an answer.
package result
