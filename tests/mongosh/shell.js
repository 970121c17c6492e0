// Run by mongosh: common operations of a new user. Prints one line per step.
const show = (name, value) => print(`${name}: ${EJSON.stringify(value)}`);
const c = db.getSiblingDB('shell').c;

c.drop();
show('insertOne', c.insertOne({ _id: 1, name: 'Java Hut', text: 'Coffee and cakes', tags: ['a', 'b'] }).acknowledged);
show('insertMany', Object.keys(c.insertMany([
  { _id: 2, name: 'Burger Buns', text: 'Gourmet hamburgers', tags: ['b'] },
  { _id: 3, name: 'Coffee Shop', text: 'Just coffee', tags: [] },
]).insertedIds).length);
show('find', c.find({ tags: 'b' }, { name: 1 }).sort({ _id: -1 }).toArray());
show('findOne', c.findOne({ name: /^Java/ })._id);
show('countDocuments', c.countDocuments({ _id: { $gt: 1 } }));
show('createIndex', c.createIndex({ tags: 1 }));
show('text index', c.createIndex({ text: 'text' }));
show('getIndexes', c.getIndexes().map((one) => one.name));
show('$text', c.find({ $text: { $search: 'coffee' } }, { _id: 1 }).sort({ _id: 1 }).toArray());
show('update', c.updateOne({ _id: 1 }, { $set: { name: 'Tea Hut' }, $push: { tags: 'c' } }).modifiedCount);
show('updated', c.findOne({ _id: 1 }));
show('aggregate', c.aggregate([
  { $unwind: '$tags' }, { $group: { _id: '$tags', n: { $sum: 1 } } }, { $sort: { n: -1, _id: 1 } },
]).toArray());
show('explain', c.find({ tags: 'b' }).explain().queryPlanner.winningPlan.stage);
show('distinct', c.distinct('tags').sort());
show('delete', c.deleteMany({ _id: { $lt: 3 } }).deletedCount);
show('validate', c.validate({ full: true }).valid);
try {
  c.insertOne({ _id: 3 });
} catch (error) {
  show('duplicate', error.code);
}
show('cursor', (() => {
  c.insertMany([...Array(500).keys()].map((n) => ({ _id: `n${n}` })));
  return c.find().batchSize(30).toArray().length;
})());
show('show collections', db.getSiblingDB('shell').getCollectionNames());
show('dropDatabase', db.getSiblingDB('shell').dropDatabase().ok);
